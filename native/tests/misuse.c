/* Tests of misuses: each is noted once for a lock and a call site, and counted. */
#include "account/misuse.h"

#include <stdint.h>

#include "account/hold.h"
#include "base/clock.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "check.h"
#include "shm/array.h"
#include "tables/held_list.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"

enum { ROBUST = 16 /* a bit of a mutex's __kind */ };

static uintptr_t frames[4] = {[1] = 0x1111, [3] = 0x2222};

static uint64_t key_number(uint64_t number)
{
    return lock_key(LT_KIND_MUTEX, (void *)(0x70000 + number * 64));
}

static uint32_t noted(void)
{
    return lt_shm->misuses.count;
}

static const struct lt_misuse *newest(void)
{
    return array_at(&lt_shm->misuses, noted() - 1);
}

static void a_misuse_is_noted_with_its_facts(struct lt_thread *t)
{
    uint32_t before = noted();
    uint64_t changed = lt_shm->misuses_changed, now = lt_now();
    misuse_note(t, LT_MISUSE_RELEASED_OTHERS, key_number(1), 42, &frames[0]);
    CHECK_EQUAL(noted(), before + 1);
    CHECK_EQUAL(lt_shm->misuses_changed, changed + 1);
    const struct lt_misuse *misuse = newest();
    CHECK_EQUAL(misuse->kind, LT_MISUSE_RELEASED_OTHERS);
    CHECK_EQUAL(misuse->lock, lock_id(key_number(1), 0));
    CHECK(misuse->stack);
    CHECK_EQUAL(misuse->tid, t->tid);
    CHECK_EQUAL(misuse->other, 42);
    CHECK_EQUAL(misuse->count, 1);
    CHECK(misuse->first >= now && misuse->first <= lt_now());
}

static void the_same_misuse_is_counted(struct lt_thread *t)
{
    uint32_t before = noted();
    uint64_t changed = lt_shm->misuses_changed;
    for (int i = 0; i < 3; i++)
        misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(2), 0, &frames[0]);
    CHECK_EQUAL(noted(), before + 1);
    CHECK_EQUAL(newest()->count, 3);
    CHECK_EQUAL(lt_shm->misuses_changed, changed + 3);
    misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(2), 0, &frames[2]); /* another place */
    misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(3), 0, &frames[0]); /* another lock */
    misuse_note(t, LT_MISUSE_TAKEN_AGAIN, key_number(2), 0, &frames[0]);   /* another kind */
    CHECK_EQUAL(noted(), before + 4);
    misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(2), 0, &frames[0]);
    CHECK_EQUAL(noted(), before + 4);
    const struct lt_misuse *first = array_at(&lt_shm->misuses, before);
    CHECK_EQUAL(first->count, 4);
}

static void nothing_is_noted_below_the_level_contended(struct lt_thread *t)
{
    uint32_t before = noted(), mode = lt_control.page.mode;
    lt_control.page.mode = (mode & ~(uint32_t)LEVEL_MASK) | LT_LEVEL_COUNTING;
    CHECK(watched() == t);
    misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(4), 0, &frames[0]);
    CHECK_EQUAL(noted(), before);
    lt_control.page.mode = mode;
    CHECK(watched() == t);
    misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(4), 0, &frames[0]);
    CHECK_EQUAL(noted(), before + 1);
}

static void a_lock_that_the_dead_thread_kept_is_noted_with_its_site(struct lt_thread *t)
{
    CHECK(!misuse_has_kept(t));
    acquired(t, key_number(5), 0, (void *)0x5555, 0);
    acquired(t, key_number(6), 0, NULL, 0);
    CHECK(misuse_has_kept(t));
    uint32_t before = noted();
    misuse_note_kept(t);
    CHECK_EQUAL(noted(), before + 2);
    const struct lt_misuse *misuse = array_at(&lt_shm->misuses, before);
    CHECK_EQUAL(misuse->kind, LT_MISUSE_KEPT);
    CHECK_EQUAL(misuse->lock, lock_id(key_number(5), 0));
    CHECK_EQUAL(misuse->tid, t->tid);
    CHECK_EQUAL(stack_at(misuse->stack)->depth, 1);
    CHECK_EQUAL(stack_frames(stack_at(misuse->stack))[0], 0x5555);
    CHECK_EQUAL(newest()->lock, lock_id(key_number(6), 0));
    CHECK_EQUAL(newest()->stack, 0);
    held_forget(t, key_number(5));
    held_forget(t, key_number(6));
}

static void expect_kept(struct lt_thread *t, uint64_t key, bool expected)
{
    CHECK_EQUAL(misuse_has_kept(t), expected);
    held_forget(t, key);
}

/* A robust mutex is made for that; a list that may be stale proves nothing. */
static void what_proves_nothing_is_not_kept(struct lt_thread *t)
{
    uint64_t key = key_number(7);
    acquired(t, key, ROBUST, NULL, 0);
    expect_kept(t, key, false);
    key = lock_key(LT_KIND_RWLOCK, (void *)0x71000); /* the bit says so of a mutex alone */
    acquired(t, key, ROBUST, NULL, 0);
    expect_kept(t, key, true);
    acquired(t, key = key_number(8), 0, NULL, 0);
    lock_find(key)->destroyed = 1;
    expect_kept(t, key, false);
    acquired(t, key = key_number(9), 0, NULL, 0);
    lock_distrust(key);
    expect_kept(t, key, false);
    acquired(t, key = key_number(10), 0, NULL, 0);
    held_find(t, key)->lock = 0; /* there was no room for the lock */
    expect_kept(t, key, false);
    acquired(t, key = key_number(11), 0, NULL, 0);
    uint32_t mode = t->mode;
    t->mode += 1u << 8; /* an earlier or later epoch */
    CHECK(!misuse_has_kept(t));
    t->mode = mode;
    expect_kept(t, key, true);
}

static void the_table_is_bounded(struct lt_thread *t)
{
    for (uint64_t n = 0; n < 2 * LT_MISUSES; n++)
        misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(100 + n), 0, &frames[0]);
    CHECK_EQUAL(noted(), LT_MISUSES);
    uint64_t changed = lt_shm->misuses_changed;
    misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(99), 0, &frames[0]);
    CHECK_EQUAL(lt_shm->misuses_changed, changed + 1);
    misuse_note(t, LT_MISUSE_RELEASED_FREE, key_number(100), 0, &frames[0]);
    for (uint32_t i = 0; i < LT_MISUSES; i++) {
        const struct lt_misuse *misuse = array_at(&lt_shm->misuses, i);
        if (misuse->lock == lock_id(key_number(100), 0))
            CHECK_EQUAL(misuse->count, 2);
    }
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    a_misuse_is_noted_with_its_facts(t);
    the_same_misuse_is_counted(t);
    nothing_is_noted_below_the_level_contended(t);
    a_lock_that_the_dead_thread_kept_is_noted_with_its_site(t);
    what_proves_nothing_is_not_kept(t);
    the_table_is_bounded(t); /* last: the table is full afterwards */
    return 0;
}
