/* The holders and the acquisitions of the program's own locks, which it announces by locktop.h. */
#ifndef LOCKTOP_CUSTOM_LOCKS_H
#define LOCKTOP_CUSTOM_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tls.h"
#include "locktop/abi.h"

/* Makes the table. Its memory comes with the first entry. */
void custom_locks_init(void);

/* The entry of the lock that the thread counts in `counters`, made if there is none. NULL if there
 * is no room. */
struct lt_custom *custom_lock_of(struct lt_thread *t, const struct lt_lock_counters *counters);

/* The functions of a word of struct lt_custom are inline, for each event of such a lock calls some.
 * The hooks may have missed releases during an older epoch: nobody has the lock then. */
enum { CUSTOM_COUNT_BITS = 24 };
#define CUSTOM_COUNT_MASK ((1ull << CUSTOM_COUNT_BITS) - 1)

static inline uint64_t custom_epoch_bits(void)
{
    return (uint64_t)(epoch_of(lt_own.mode) & 0xffff) << (2 * CUSTOM_COUNT_BITS);
}

static inline uint64_t custom_word_now(uint64_t word)
{
    uint64_t epoch = custom_epoch_bits();
    return word >> (2 * CUSTOM_COUNT_BITS) == epoch >> (2 * CUSTOM_COUNT_BITS) ? word : epoch;
}

/* The threads that have the lock. */
static inline uint32_t custom_lock_holders(uint64_t word)
{
    return (uint32_t)(custom_word_now(word) & CUSTOM_COUNT_MASK);
}

static inline uint32_t custom_lock_acquisitions(uint64_t word)
{
    return (uint32_t)(custom_word_now(word) >> CUSTOM_COUNT_BITS & CUSTOM_COUNT_MASK);
}

/* One more thread has the lock (`taken`), or one less. */
static inline void custom_lock_change(uint64_t *word, bool taken)
{
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED), now;
    do {
        uint64_t count = custom_lock_holders(old), times = custom_lock_acquisitions(old);
        count = taken ? count + 1 : count ? count - 1 : 0;
        times += taken;
        now = custom_epoch_bits() | (times & CUSTOM_COUNT_MASK) << CUSTOM_COUNT_BITS |
              (count & CUSTOM_COUNT_MASK);
    } while (
        !__atomic_compare_exchange_n(word, &old, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

#endif
