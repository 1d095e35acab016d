/* The mapping of the shared file. The mapping grows by segments, without a file descriptor. */
#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct lt_header *lt_shm;
struct shm_map shm_map;
char shm_path[SHM_PATH_MAX];

static bool sealed;

long shm_map_at(void *address, uint64_t offset, uint64_t length)
{
    long fd =
        sys_call6(SYS_openat, AT_FDCWD, (long)shm_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    long mapped = sys_call6(SYS_mmap, (long)address, (long)length, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED, fd, (long)offset);
    sys_call3(SYS_close, fd, 0, 0);
    return mapped;
}

struct shm_map shm_detach(void)
{
    struct shm_map map = shm_map;
    memset(&shm_map, 0, sizeof shm_map);
    lt_shm = NULL;
    return map;
}

/* A segment but the first is mapped together with the last page of the one before. */
void shm_unmap(const struct shm_map *map)
{
    for (unsigned i = 0; i < SHM_SEGMENTS; i++)
        if (map->segment[i])
            sys_call3(SYS_munmap, (long)(map->segment[i] - (i ? LT_PAGE : 0)),
                      (long)(shm_segment_size(i) + (i ? LT_PAGE : 0)), 0);
}

/* Maps a further segment without a descriptor. A program may have closed them all, or may sit in a
 * sandbox that opens nothing. mremap() with an old size of 0 maps the same file a second time, from
 * the page given on (mremap(2)). */
bool shm_segment_map(unsigned segment)
{
    if (__atomic_load_n(&shm_map.segment[segment], __ATOMIC_ACQUIRE))
        return true;
    if (shm_is_sealed())
        return false;
    uint8_t *before = __atomic_load_n(&shm_map.segment[segment - 1], __ATOMIC_ACQUIRE);
    long last_page = (long)(before + shm_segment_size(segment - 1) - LT_PAGE);
    long address = sys_call6(SYS_mremap, last_page, 0, (long)(LT_PAGE + shm_segment_size(segment)),
                             MREMAP_MAYMOVE, 0, 0);
    if (address < 0 && address > -4096)
        return false;
    sys_call3(SYS_madvise, address, (long)(LT_PAGE + shm_segment_size(segment)), MADV_DONTDUMP);
    uint8_t *none = NULL;
    uint8_t *mine = (uint8_t *)address + LT_PAGE;
    if (!__atomic_compare_exchange_n(&shm_map.segment[segment], &none, mine, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        sys_call3(SYS_munmap, address, (long)(LT_PAGE + shm_segment_size(segment)), 0);
    return true;
}

/* Reserves pages without a descriptor; where the kernel is too old for that (before 5.14), by
 * opening the file again. A full file system makes either fail; neither raises SIGBUS. */
bool shm_pages_reserve(uint64_t from, uint64_t to)
{
    long error =
        sys_call3(SYS_madvise, (long)shm_ptr(from), (long)(to - from), MADV_POPULATE_WRITE);
    if (error != -EINVAL)
        return error == 0;
    long fd =
        sys_call6(SYS_openat, AT_FDCWD, (long)shm_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return false;
    error = sys_call6(SYS_fallocate, fd, 0, (long)from, (long)(to - from), 0, 0);
    sys_call3(SYS_close, fd, 0, 0);
    return error == 0;
}

union generation_page lt_generation __attribute__((aligned(LT_PAGE)));
static bool has_generation;

/* A child, however it was made, gets an empty copy of the page (madvise(2), Linux 4.14). */
void shm_begin_generation(void)
{
    if (!has_generation)
        sys_call3(SYS_madvise, (long)&lt_generation, sizeof lt_generation, MADV_WIPEONFORK);
    has_generation = true;
    lt_generation.is_own = 1;
}

bool shm_is_of_parent(void)
{
    return has_generation && !lt_generation.is_own;
}

void shm_set_sealed(bool is_sealed)
{
    __atomic_store_n(&sealed, is_sealed, __ATOMIC_RELEASE);
}

bool shm_is_sealed(void)
{
    return __atomic_load_n(&sealed, __ATOMIC_ACQUIRE);
}
