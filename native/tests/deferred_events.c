/* Tests of deferred events: no record is written while the thread holds a lock. */
#include "account/deferred_events.h"

#include <stdint.h>

#include "account/hold.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"

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
    CHECK_EQUAL(local_of(t)->deferred_count, 0);
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

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    at_once_without_a_lock(t);
    at_the_release_of_the_last_lock(t);
    no_event_is_lost(t);
    return 0;
}
