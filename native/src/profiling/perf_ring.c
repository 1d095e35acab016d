/* The rings of perf_event_open(2). The mapping alone keeps the event, so the descriptor is closed
 * at once. A program that closes all descriptors would close this one, too, and reuse its number. A
 * forked child does not get the mapping. */
#include "profiling/perf_ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <locktop.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "profiling/sources.h"

/* The kernel bounds the memory of rings for each user. Large rings first. */
static const unsigned sizes[] = {16, 4, 1}; /* pages */

static long map(int fd, unsigned pages)
{
    return sys_call6(SYS_mmap, 0, (long)(pages + 1) * LT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
                     fd, 0);
}

static bool failed(long result)
{
    return result < 0 && result > -4096;
}

int perf_ring_open(struct perf_ring *ring, const struct profile *profile, uint32_t tid)
{
    int fd = profile_source_open(profile->source, profile->interval, tid);
    if (fd < 0)
        return fd == -ESRCH ? LOCKTOP_LIMIT : profile_source_status(profile->source);
    long page = -1;
    unsigned pages = 0;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes && failed(page); i++)
        page = map(fd, pages = sizes[i]);
    sys_call3(SYS_close, fd, 0, 0);
    if (failed(page))
        return LOCKTOP_LIMIT;
    *ring = (struct perf_ring){(void *)page, (uint64_t)pages * LT_PAGE};
    return LOCKTOP_OK;
}

/* The 8 bytes at a position of the stream. Records are multiples of 8 bytes. */
static uint64_t word(const struct perf_ring *ring, uint64_t offset)
{
    const uint8_t *data = (const uint8_t *)ring->page + LT_PAGE;
    return *(const volatile uint64_t *)(data + (offset & (ring->size - 1)));
}

static void count(const struct perf_ring *ring, const struct profile *profile, uint64_t offset)
{
    uint64_t first = word(ring, offset + 8);
    if (!profile_source(profile->source)->in_kernel)
        profile_count(profile, first);
    else if (first != PERF_SAMPLE_REGS_ABI_NONE)
        profile_count(profile, word(ring, offset + 16));
    else
        profile_add(&profile->shared->lost, 1);
}

void perf_ring_drain(const struct perf_ring *ring, const struct profile *profile)
{
    struct perf_event_mmap_page *page = ring->page;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), offset = page->data_tail;
    while (offset < head) {
        uint64_t start = word(ring, offset); /* struct perf_event_header */
        uint32_t type = (uint32_t)start, size = (uint32_t)(start >> 48);
        if (size < 8 || size % 8)
            break; /* no record of this kernel's */
        if (type == PERF_RECORD_SAMPLE)
            count(ring, profile, offset);
        else if (type == PERF_RECORD_LOST)
            profile_add(&profile->shared->lost, word(ring, offset + 16));
        offset += size;
    }
    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

void perf_ring_close(struct perf_ring *ring)
{
    sys_call3(SYS_munmap, (long)ring->page, (long)(ring->size + LT_PAGE), 0);
    ring->page = NULL;
}
