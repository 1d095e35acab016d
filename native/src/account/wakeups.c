/* The threads that sleep in a condition wait, and those that were woken. */
#include "account/wakeups.h"

#include "account/blame.h"
#include "base/clock.h"
#include "shm/array.h"
#include "shm/segment.h"

enum { ROUND_SHIFT = 2 * LT_SLEEPERS_BITS };
#define SLEEPERS_MASK ((1ull << LT_SLEEPERS_BITS) - 1)

static uint64_t round_of(uint64_t word)
{
    return word >> ROUND_SHIFT;
}

static uint64_t word_of(uint64_t round, uint64_t woken, uint64_t sleepers)
{
    return round << ROUND_SHIFT | woken << LT_SLEEPERS_BITS | sleepers;
}

/* The word with these figures. If all sleepers are woken, a new round begins at `now`. */
static uint64_t settled(struct lt_condition *condition, uint64_t round, uint64_t woken,
                        uint64_t sleepers, uint64_t now)
{
    if (!woken || woken < sleepers)
        return word_of(round, woken, sleepers);
    round = round_of(word_of(round + 1, 0, 0));
    __atomic_store_n(&condition->round_at[round % LT_WAKE_ROUNDS], now, __ATOMIC_RELAXED);
    return word_of(round, 0, 0);
}

static bool exchange(struct lt_condition *condition, uint64_t *old, uint64_t now)
{
    return __atomic_compare_exchange_n(&condition->word, old, now, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static struct lt_lock *mutex_of(const struct lt_condition *condition)
{
    uint32_t id = __atomic_load_n(&condition->mutex, __ATOMIC_RELAXED);
    return id ? array_at(&lt_shm->locks, id) : NULL;
}

uint64_t wakeup_begin(struct lt_condition *condition)
{
    return round_of(__atomic_fetch_add(&condition->word, 1, __ATOMIC_ACQ_REL));
}

void wakeup_signal(struct lt_condition *condition, uint32_t most)
{
    struct lt_lock *mutex = mutex_of(condition);
    uint64_t old = __atomic_load_n(&condition->word, __ATOMIC_ACQUIRE), next, count;
    uint64_t now = lt_now();
    do {
        uint64_t sleepers = old & SLEEPERS_MASK, woken = old >> LT_SLEEPERS_BITS & SLEEPERS_MASK;
        count = sleepers > woken ? sleepers - woken : 0;
        count = count < most ? count : most;
        if (!count || !mutex)
            return;
        next = settled(condition, round_of(old), woken + count, sleepers, now);
        __atomic_store_n(&condition->signalled, now, __ATOMIC_RELAXED);
        /* Before the sleepers may know that they are woken, for each of them takes one wait off. */
        __atomic_fetch_add(&mutex->waits, count * blame_waiter(now), __ATOMIC_RELAXED);
        if (exchange(condition, &old, next)) {
            blame_note_new(mutex, 0);
            return;
        }
        __atomic_fetch_sub(&mutex->waits, count * blame_waiter(now), __ATOMIC_RELAXED);
    } while (true);
}

uint64_t wakeup_end(struct lt_condition *condition, uint64_t round, bool heard)
{
    uint64_t old = __atomic_load_n(&condition->word, __ATOMIC_ACQUIRE), next;
    bool is_woken;
    do {
        uint64_t sleepers = old & SLEEPERS_MASK, woken = old >> LT_SLEEPERS_BITS & SLEEPERS_MASK;
        if (round_of(old) != round) {
            uint64_t began = (round + 1) % LT_WAKE_ROUNDS;
            return __atomic_load_n(&condition->round_at[began], __ATOMIC_RELAXED);
        }
        is_woken = heard && woken;
        next = settled(condition, round, woken - is_woken, sleepers - 1, lt_now());
    } while (!exchange(condition, &old, next));
    return is_woken ? __atomic_load_n(&condition->signalled, __ATOMIC_RELAXED) : 0;
}

bool wakeup_waited(const struct lt_condition *condition, uint64_t woken, uint64_t now, bool alone)
{
    struct lt_lock *mutex = mutex_of(condition);
    if (!mutex)
        return false;
    /* Ticks of all waiters since the last release that a thread waited for. */
    uint64_t word = __atomic_load_n(&mutex->waits, __ATOMIC_RELAXED);
    uint64_t uncharged = blame_units(now) * (word & WAITS_MASK) - (word >> LT_WAITS_BITS);
    uncharged &= (1ull << (64 - LT_WAITS_BITS)) - 1;
    if (alone)
        blame_wait_ends_alone(mutex, now);
    else
        blame_wait_ends(mutex, now);
    return blame_units(now) - blame_units(woken) > uncharged;
}
