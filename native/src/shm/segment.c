#include "shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/sys.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
    FIRST_BACKED = 256 << 10, /* reserved at the start */
    SEAL_ROOM = 4 << 20,      /* for what comes after the program confined itself */
    LAST_ROOM = 32 << 10,     /* set aside for what is waited for */
    CACHE_LINE = 64,
    REFUSALS_BEFORE_RETRY = 1024
};

struct lt_header *lt_shm;
struct shm_map shm_map;

static char path[SHM_PATH_MAX];
static bool sealed;
static uint64_t seal_from, seal_end; /* all that is handed out from between these is reserved */
static uint64_t last_used; /* of the last room, which lies before everything else in the arena */
static uint64_t too_large; /* bytes: the least that the system refused */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static uint64_t segment_size(unsigned segment)
{
    return (uint64_t)1 << (SHM_FIRST_SHIFT + segment);
}

/* Growing a file past RLIMIT_FSIZE raises SIGXFSZ, which would kill the program. */
static uint64_t largest_file(void)
{
    uint64_t largest = shm_segment_start(SHM_SEGMENTS);
    struct rlimit limit;
    if (sys_call6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
        limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < largest)
        largest = limit.rlim_cur;
    if (lt_settings.memory && lt_settings.memory < largest)
        largest = lt_settings.memory;
    return largest;
}

/* Field 22 of /proc/self/stat (proc_pid_stat(5)). The second field, the program's name, may hold
 * anything, so counting starts after the last closing parenthesis. */
static uint64_t process_start_time(void)
{
    char text[1024];
    long fd =
        sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/stat", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return 0;
    long length = sys_call3(SYS_read, fd, (long)text, sizeof text - 1);
    sys_call3(SYS_close, fd, 0, 0);
    if (length <= 0)
        return 0;
    text[length] = 0;
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    uint64_t value = 0;
    if (at)
        for (at++; *at >= '0' && *at <= '9'; at++)
            value = value * 10 + (uint64_t)(*at - '0');
    return value;
}

/* "pid:[4026531836]" -> 4026531836 */
static uint64_t pid_namespace(void)
{
    char text[64];
    long length = sys_call6(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)text,
                            sizeof text - 1, 0, 0);
    uint64_t value = 0;
    for (long i = 0; i < length; i++)
        if (text[i] >= '0' && text[i] <= '9')
            value = value * 10 + (uint64_t)(text[i] - '0');
    return value;
}

static uint32_t user_id(void)
{
    return (uint32_t)sys_call3(SYS_geteuid, 0, 0, 0);
}

static long create_exclusively(void)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    return sys_call6(SYS_openat, AT_FDCWD, (long)path, flags, 0600, 0, 0);
}

/* Containers that share the directory may each have a process of this pid that began in this tick. */
static bool is_of_another_namespace(void)
{
    uint64_t theirs = 0;
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    long fd = sys_call6(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    if (fd < 0)
        return false;
    sys_call6(SYS_pread64, fd, (long)&theirs, sizeof theirs,
              offsetof(struct lt_header, pid_namespace), 0, 0);
    sys_call3(SYS_close, fd, 0, 0);
    return theirs && theirs != pid_namespace();
}

static long open_new(void)
{
    long fd = create_exclusively();
    if (fd != -EEXIST)
        return fd;
    /* Same pid, same start time: this process, before it called exec. */
    if (!is_of_another_namespace()) {
        shm_remove();
        fd = create_exclusively();
        if (fd != -EEXIST)
            return fd;
    }
    /* Or it was another user then, whose file we may not remove. */
    size_t length = strlen(path);
    snprintf(path + length, sizeof path - length, "-%u", user_id());
    shm_remove();
    return create_exclusively();
}

/* strerror() may allocate and translate; these are the ones that happen. */
static const char *error_text(long error)
{
    switch (-error) {
    case ENOSPC: return "no space left";
    case ENOENT: return "no such directory";
    case ENOTDIR: return "not a directory";
    case EACCES: return "permission denied";
    case EPERM: return "not permitted";
    case EROFS: return "read-only file system";
    case ENOMEM: return "no memory or address space";
    case EMFILE:
    case ENFILE: return "too many open files";
    case EFBIG: return "file size limit (ulimit -f)";
    case EDQUOT: return "disk quota";
    default: return "error";
    }
}

static bool failed(const char *what, const char *where, long error, char *reason, size_t size)
{
    snprintf(reason, size, "%s %s: %s (errno %ld)", what, where, error_text(error), -error);
    return false;
}

static void fill_header(struct lt_header *header, uint64_t start_time, uint64_t limit)
{
    header->version = LT_ABI_VERSION;
    header->byte_order = LT_BYTE_ORDER;
    header->word_bits = 8 * sizeof(void *);
    header->header_size = sizeof *header;
    header->pid = sys_getpid();
    header->uid = user_id();
    header->start_time = start_time;
    header->pid_namespace = pid_namespace();
    header->used = LT_ARENA_OFFSET + LAST_ROOM;
    header->backed = FIRST_BACKED;
    header->limit = limit;
}

static void mark_generation(void);

long shm_map_at(void *address, uint64_t offset, uint64_t length)
{
    long fd = sys_call6(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    long mapped = sys_call6(SYS_mmap, (long)address, (long)length, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED, fd, (long)offset);
    sys_call3(SYS_close, fd, 0, 0);
    return mapped;
}

static bool map_first(long fd, uint64_t limit, char *reason, size_t size)
{
    /* Sparse: a length costs nothing, so no descriptor is needed to grow later. */
    long error = sys_call3(SYS_ftruncate, fd, (long)limit, 0);
    if (error == 0)
        error = sys_call6(SYS_fallocate, fd, 0, 0, FIRST_BACKED, 0, 0);
    if (error != 0)
        return failed("cannot reserve memory in", path, error, reason, size);
    uint64_t length = limit < segment_size(0) ? limit : segment_size(0);
    long address = sys_call6(SYS_mmap, 0, (long)length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address < 0 && address > -4096)
        return failed("cannot map", path, address, reason, size);
    shm_map.segment[0] = (uint8_t *)address;
    sys_call3(SYS_madvise, address, (long)length, MADV_DONTDUMP);
    return true;
}

bool shm_create(const char *directory, char *reason, size_t reason_size)
{
    uint64_t start_time = process_start_time();
    int length = snprintf(path, sizeof path, "%s/locktop-%u-%llu", directory, sys_getpid(),
                          (unsigned long long)start_time);
    if (length < 0 || (size_t)length + sizeof "-4294967295" > sizeof path)
        return failed("the path is too long:", directory, -ENAMETOOLONG, reason, reason_size);
    uint64_t limit = largest_file();
    if (limit < FIRST_BACKED)
        return failed("cannot make", path, -EFBIG, reason, reason_size);
    long fd = open_new();
    if (fd < 0)
        return failed("cannot make", path, fd, reason, reason_size);
    bool mapped = map_first(fd, limit, reason, reason_size);
    sys_call3(SYS_close, fd, 0, 0);
    if (!mapped) {
        shm_remove();
        return false;
    }
    struct lt_header *header = (struct lt_header *)shm_map.segment[0];
    fill_header(header, start_time, limit);
    last_used = LT_ARENA_OFFSET;
    too_large = UINT64_MAX;
    mark_generation();
    lt_shm = header;
    return true;
}

void shm_remove(void)
{
    if (path[0])
        sys_call3(SYS_unlinkat, AT_FDCWD, (long)path, 0);
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
                      (long)(segment_size(i) + (i ? LT_PAGE : 0)), 0);
}

void shm_leave_reason(const char *reason)
{
    char name[200];
    snprintf(name, sizeof name, "locktop: %s", reason);
    long fd = sys_call3(SYS_memfd_create, (long)name, 1 /* MFD_CLOEXEC */, 0);
    if (fd < 0)
        return;
    /* An empty file, which no limit of the size of files forbids, and nobody is to touch. */
    sys_call6(SYS_mmap, 0, LT_PAGE, PROT_NONE, MAP_SHARED, fd, 0);
    sys_call3(SYS_close, fd, 0, 0);
}

/* Maps a further segment without a descriptor: a program may have closed them all, or may sit in a
 * sandbox that opens nothing. mremap() with an old size of 0 makes a second mapping of the same
 * file from the page given on (mremap(2)). */
static bool segment_map(unsigned segment)
{
    if (__atomic_load_n(&shm_map.segment[segment], __ATOMIC_ACQUIRE))
        return true;
    if (shm_is_sealed())
        return false;
    uint8_t *before = __atomic_load_n(&shm_map.segment[segment - 1], __ATOMIC_ACQUIRE);
    long last_page = (long)(before + segment_size(segment - 1) - LT_PAGE);
    long address = sys_call6(SYS_mremap, last_page, 0, (long)(LT_PAGE + segment_size(segment)),
                             MREMAP_MAYMOVE, 0, 0);
    if (address < 0 && address > -4096)
        return false;
    sys_call3(SYS_madvise, address, (long)(LT_PAGE + segment_size(segment)), MADV_DONTDUMP);
    uint8_t *none = NULL;
    uint8_t *mine = (uint8_t *)address + LT_PAGE;
    if (!__atomic_compare_exchange_n(&shm_map.segment[segment], &none, mine, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        sys_call3(SYS_munmap, address, (long)(LT_PAGE + segment_size(segment)), 0);
    return true;
}

/* Reserves pages without a descriptor; where the kernel is too old for that (before 5.14), by
 * opening the file again. A full file system makes either fail; neither raises SIGBUS. */
static bool pages_reserve(uint64_t from, uint64_t to)
{
    long error =
        sys_call3(SYS_madvise, (long)shm_ptr(from), (long)(to - from), MADV_POPULATE_WRITE);
    if (error != -EINVAL)
        return error == 0;
    long fd = sys_call6(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return false;
    error = sys_call6(SYS_fallocate, fd, 0, (long)from, (long)(to - from), 0, 0);
    sys_call3(SYS_close, fd, 0, 0);
    return error == 0;
}

/* Makes everything below `end` safe to touch. Several threads may do this at once: reserving is
 * idempotent, and the mark only rises after the pages are there. */
static bool arena_back(uint64_t end)
{
    for (;;) {
        uint64_t backed = __atomic_load_n(&lt_shm->backed, __ATOMIC_ACQUIRE);
        if (end <= backed)
            return true;
        if (shm_is_sealed())
            return false;
        unsigned segment = shm_segment_of(backed);
        uint64_t stop = shm_segment_start(segment + 1);
        uint64_t wanted = round_up(end, SHM_STEP);
        if (wanted > stop)
            wanted = stop;
        if (wanted > lt_shm->limit)
            wanted = lt_shm->limit / LT_PAGE * LT_PAGE;
        if (wanted <= backed || (segment && !segment_map(segment)) ||
            !pages_reserve(backed, wanted))
            return false;
        __atomic_compare_exchange_n(&lt_shm->backed, &backed, wanted, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
    }
}

/* With the file system full each attempt is a failing system call, which reserves what it can until
 * there is no more; so only one in many tries: for a table one in as many as it would have entries.
 * For less than what was too much there may be room. */
static bool may_try(uint64_t size)
{
    uint64_t refused = __atomic_load_n(&lt_shm->refused, __ATOMIC_RELAXED);
    return size < __atomic_load_n(&too_large, __ATOMIC_RELAXED) ||
           refused % (REFUSALS_BEFORE_RETRY + size / CACHE_LINE) == 0;
}

static bool tried(uint64_t size, bool found)
{
    uint64_t least = __atomic_load_n(&too_large, __ATOMIC_RELAXED);
    if (found && size >= least)
        __atomic_store_n(&too_large, UINT64_MAX, __ATOMIC_RELAXED); /* others gave room back */
    else if (!found && size < least)
        __atomic_store_n(&too_large, size, __ATOMIC_RELAXED);
    return found;
}

static bool refuse(void)
{
    __atomic_fetch_add(&lt_shm->refused, 1, __ATOMIC_RELAXED);
    __atomic_fetch_or(&lt_shm->notes, LT_NOTE_NO_ROOM, __ATOMIC_RELAXED);
    return false;
}

static bool arena_room(uint64_t end)
{
    uint64_t backed = __atomic_load_n(&lt_shm->backed, __ATOMIC_ACQUIRE);
    if (end <= backed)
        return true;
    uint64_t size = round_up(end - backed, SHM_STEP);
    if (end > lt_shm->limit || !may_try(size))
        return refuse();
    return tried(size, arena_back(end)) || refuse();
}

/* A page of which a child, however it was made, gets an empty copy (madvise(2), Linux 4.14). */
static uint32_t *generation;

static void mark_generation(void)
{
    if (!generation) {
        long address = sys_call6(SYS_mmap, 0, LT_PAGE, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (address < 0 && address > -4096)
            return;
        sys_call3(SYS_madvise, address, LT_PAGE, MADV_WIPEONFORK);
        generation = (uint32_t *)address;
    }
    *generation = 1;
}

bool shm_is_strangers(void)
{
    return generation && *generation == 0;
}

bool shm_seal(void)
{
    bool is_ours = lt_shm && !shm_is_strangers();
    if (is_ours && sys_getpid() != lt_shm->pid)
        return false; /* a vfork child confines itself, not this process */
    if (is_ours) {
        seal_from = __atomic_load_n(&lt_shm->used, __ATOMIC_RELAXED);
        arena_back(seal_from + SEAL_ROOM);
        seal_end = __atomic_load_n(&lt_shm->backed, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&sealed, true, __ATOMIC_RELEASE);
    return true;
}

void shm_unseal(void)
{
    __atomic_store_n(&sealed, false, __ATOMIC_RELEASE);
}

bool shm_is_sealed(void)
{
    return __atomic_load_n(&sealed, __ATOMIC_ACQUIRE);
}

/* The place that comes after `used`; 0 if there is none. */
static uint64_t place_after(uint64_t used, uint64_t size, uint64_t alignment)
{
    uint64_t start = round_up(used, alignment);
    unsigned segment = shm_segment_of(start);
    while (start + size > shm_segment_start(segment + 1)) {
        segment++;
        start = shm_segment_start(segment);
    }
    return segment < SHM_SEGMENTS && (!segment || segment_map(segment)) ? start : 0;
}

static uint64_t alloc(uint64_t size, uint64_t alignment)
{
    if (!lt_shm || shm_is_strangers())
        return 0;
    uint64_t used = __atomic_load_n(&lt_shm->used, __ATOMIC_RELAXED);
    for (;;) {
        uint64_t start = place_after(used, size, alignment);
        if (!start || !arena_room(start + size))
            return 0;
        if (__atomic_compare_exchange_n(&lt_shm->used, &used, start + size, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return start;
    }
}

/* Lets the mark rise from `start`, below which all is taken, over a place whose owner reserves its
 * pages himself. Not before that place is taken: somebody else might get it, and take it for
 * reserved. */
static bool arena_skip(uint64_t start, uint64_t end)
{
    for (;;) {
        uint64_t backed = __atomic_load_n(&lt_shm->backed, __ATOMIC_ACQUIRE);
        if (backed >= end)
            return true;
        if (backed < start && !arena_back(start))
            return refuse();
        if (backed >= start)
            __atomic_compare_exchange_n(&lt_shm->backed, &backed, end, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
    }
}

/* What is left of the segment before is not reserved either. */
uint64_t shm_alloc_sparse(uint64_t size)
{
    if (!lt_shm || shm_is_strangers())
        return 0;
    uint64_t start, used = __atomic_load_n(&lt_shm->used, __ATOMIC_RELAXED);
    size = round_up(size, LT_PAGE);
    do {
        start = place_after(used, size, LT_PAGE);
        if (!start || start + size > lt_shm->limit) {
            refuse();
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&lt_shm->used, &used, start + size, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return arena_skip(used, start + size) ? start : 0;
}

uint64_t shm_alloc(uint64_t size)
{
    return alloc(size, CACHE_LINE);
}

uint64_t shm_alloc_last(uint64_t size)
{
    uint64_t offset = shm_alloc(size);
    if (offset || !lt_shm || shm_is_strangers())
        return offset;
    uint64_t used = __atomic_load_n(&last_used, __ATOMIC_RELAXED);
    do {
        if (size > LT_ARENA_OFFSET + LAST_ROOM - used)
            return 0;
    } while (!__atomic_compare_exchange_n(&last_used, &used, used + round_up(size, CACHE_LINE),
                                          false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return used;
}

/* A hook that a signal interrupted may still write to a table that the signal's handler made grow
 * and so gave back. That is no harm: the page comes back, and it is nobody else's. */
void shm_give_back(uint64_t offset, uint64_t size)
{
    if (size >= LT_PAGE && !shm_is_sealed() && !shm_is_strangers())
        sys_call3(SYS_madvise, (long)shm_ptr(offset), (long)size, MADV_REMOVE);
}

uint64_t shm_place(uint64_t size)
{
    return size > SHM_STEP ? shm_alloc_sparse(size)
                           : alloc(size, size < LT_PAGE ? CACHE_LINE : LT_PAGE);
}

/* `alone`: nobody else may use any of these pages yet. */
static bool reserve(uint64_t offset, uint64_t size, bool alone)
{
    if (!lt_shm || shm_is_strangers())
        return false;
    if (shm_is_sealed())
        return (offset >= seal_from && offset + size <= seal_end) || refuse();
    if (size < LT_PAGE)
        return true;
    if (!may_try(size))
        return refuse();
    uint64_t from = offset / LT_PAGE * LT_PAGE, to = round_up(offset + size, LT_PAGE);
    if (tried(size, pages_reserve(from, to)))
        return true;
    if (alone)
        shm_give_back(offset, size);
    return refuse();
}

bool shm_reserve(uint64_t offset, uint64_t size)
{
    return reserve(offset, size, true);
}

bool shm_reserve_part(uint64_t offset, uint64_t size)
{
    return reserve(offset, size, false);
}
