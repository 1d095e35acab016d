/* Tests of deferred events: no record is written while the thread holds a lock. */
#include "account/deferred_events.h"

#include <stdint.h>

#include "account/account_state.h"
#include "account/hold.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "shm/segment.h"

static uint64_t key_number(uint64_t number)
{
    return lock_key(LT_KIND_MUTEX, (const void *)(uintptr_t)(0x10000 + 64 * number));
}

static const struct lock_event waited = {
    .type = LT_RECORD_WAIT, .kind = LT_KIND_MUTEX, .lock = 1, .wait = 100};

static void give_back(struct lt_thread *t, uint64_t key)
{
    struct release release;
    release_begin(t, key, &release);
    release_end(t, &release);
}

static void at_once_without_a_lock(struct lt_thread *t)
{
    uint64_t before = t->ring_head;
    event_defer(t, &waited);
    CHECK_EQUAL(t->ring_head, before + 1);
    CHECK_EQUAL(account_state(t)->deferred_count, 0);
}

/* The release of the lock taken last writes the event, and not the release of another one. */
static void at_the_release_of_the_last_lock(struct lt_thread *t)
{
    acquired(t, key_number(1), 0, NULL, 0);
    acquired(t, key_number(2), 0, NULL, 0);
    uint64_t before = t->ring_head;
    event_defer(t, &waited);
    give_back(t, key_number(1));
    CHECK_EQUAL(t->ring_head, before);
    give_back(t, key_number(2));
    CHECK_EQUAL(t->ring_head, before + 1);
}

/* There is room for a few events: further ones are written at once, so none is lost. */
static void no_event_is_lost(struct lt_thread *t)
{
    uint64_t before = t->ring_head;
    acquired(t, key_number(3), 0, NULL, 0);
    for (int i = 0; i < DEFERRED_MAX + 2; i++)
        event_defer(t, &waited);
    CHECK_EQUAL(t->ring_head, before + 2);
    give_back(t, key_number(3));
    CHECK_EQUAL(t->ring_head, before + DEFERRED_MAX + 2);
}

static uint64_t waits_by_stack(struct lt_thread *t, uint32_t lock, uint32_t stack)
{
    const struct lt_site *table = shm_ptr(t->sites);
    for (uint32_t i = 0; i < t->site_capacity; i++)
        if (table[i].count && table[i].lock == lock && table[i].stack == stack)
            return table[i].wait_ticks;
    return 0;
}

/* A hold adds nothing to the waits by stack. */
static void waits_are_summed_by_stack(struct lt_thread *t)
{
    struct lock_event event = {.type = LT_RECORD_WAIT, .lock = 7, .stack = 8, .wait = 100};
    for (int i = 0; i < 3; i++)
        event_write(t, &event);
    CHECK_EQUAL(waits_by_stack(t, 7, 8), 300);
    event.type = LT_RECORD_TIMEOUT;
    event_write(t, &event);
    CHECK_EQUAL(waits_by_stack(t, 7, 8), 400);
    event.type = LT_RECORD_HOLD;
    event_write(t, &event);
    CHECK_EQUAL(waits_by_stack(t, 7, 8), 400);
}

static void nothing_is_written_below_the_level_contended(struct lt_thread *t)
{
    uint64_t before = t->ring_head;
    uint32_t mode = lt_own.mode;
    lt_own.mode = (mode & ~(uint32_t)LEVEL_MASK) | LT_LEVEL_COUNTING;
    event_write(t, &waited);
    lt_own.mode = mode;
    CHECK_EQUAL(t->ring_head, before);
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    at_once_without_a_lock(t);
    at_the_release_of_the_last_lock(t);
    no_event_is_lost(t);
    waits_are_summed_by_stack(t);
    nothing_is_written_below_the_level_contended(t);
    return 0;
}
