/* The table of the program's own locks: the holders and the acquisitions of each lock. */
#include "tables/custom_locks.h"

#include "base/tls.h"
#include "shm/array.h"
#include "shm/segment.h"

enum { CUSTOMS_FIRST = 16 };

void custom_locks_init(void)
{
    array_init(&lt_shm->customs, sizeof(struct lt_custom), CUSTOMS_FIRST);
}

/* A word of struct lt_custom. The hooks may have missed releases during an older epoch: nobody has
 * the lock then. */
enum { COUNT_BITS = 24 };
#define COUNT_MASK ((1ull << COUNT_BITS) - 1)

static inline uint64_t epoch_bits(void)
{
    return (uint64_t)(epoch_of(lt_own.mode) & 0xffff) << (2 * COUNT_BITS);
}

static inline uint64_t fresh(uint64_t word)
{
    return word >> (2 * COUNT_BITS) == epoch_bits() >> (2 * COUNT_BITS) ? word : epoch_bits();
}

uint32_t custom_lock_holders(uint64_t word)
{
    return (uint32_t)(fresh(word) & COUNT_MASK);
}

uint32_t custom_lock_acquisitions(uint64_t word)
{
    return (uint32_t)(fresh(word) >> COUNT_BITS & COUNT_MASK);
}

void custom_lock_change(uint64_t *word, bool taken)
{
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED), now;
    do {
        uint64_t count = custom_lock_holders(old), times = custom_lock_acquisitions(old);
        count = taken ? count + 1 : count ? count - 1 : 0;
        times += taken;
        now = epoch_bits() | (times & COUNT_MASK) << COUNT_BITS | (count & COUNT_MASK);
    } while (
        !__atomic_compare_exchange_n(word, &old, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

struct lt_custom *custom_lock_of(struct lt_thread *t, const struct lt_lock_counters *counters)
{
    if (!counters->lock)
        return NULL;
    struct lt_lock *lock = array_at(&lt_shm->locks, counters->lock);
    uint32_t at = __atomic_load_n(&lock->type, __ATOMIC_ACQUIRE);
    if (!at) {
        uint32_t mode = thread_busy(t), index;
        if (array_push(&lt_shm->customs, &index) &&
            __atomic_compare_exchange_n(&lock->type, &at, index + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            at = index + 1;
        thread_ready(t, mode);
    }
    return at ? array_at(&lt_shm->customs, at - 1) : NULL;
}
