/* Accounts for waits that ended in the second attempt. */
#include "account/brief_wait.h"

#include <stdbool.h>

#include "account/account_state.h"
#include "account/hold.h"
#include "base/clock.h"
#include "base/tls.h"
#include "shm/control.h"
#include "stack/capture.h"
#include "tables/held_list.h"
#include "tables/histogram.h"
#include "tables/thread_table.h"

enum { SITES = 8, GAP_MAX = 32 };

/* A call site that waited briefly for a lock, and the stack of its last sample. */
struct sampled_site {
    uint64_t site;
    uint32_t lock; /* id; 0: none yet */
    uint32_t stack;
    uint32_t samples;
    uint32_t left; /* waits until the next sample */
};

/* `block`: the stacks belong to the file of that block. A forked child has another one. */
static __thread struct {
    const struct lt_thread *block;
    struct sampled_site sites[SITES];
} lately;

static struct sampled_site *site_entry(const struct lt_thread *t, uint32_t lock, uint64_t site)
{
    if (UNLIKELY(lately.block != t)) {
        for (int i = 0; i < SITES; i++)
            lately.sites[i] = (struct sampled_site){0};
        lately.block = t;
    }
    struct sampled_site *entry = &lately.sites[(site >> 2 ^ lock) % SITES];
    if (UNLIKELY(entry->site != site || entry->lock != lock))
        *entry = (struct sampled_site){.site = site, .lock = lock};
    return entry;
}

/* The number of waits until the next sample is random, so that a program's rhythm cannot hide a
 * stack. */
static void plan_next(struct sampled_site *entry, struct lt_thread *t)
{
    uint32_t gap = entry->samples < GAP_MAX ? ++entry->samples : GAP_MAX;
    entry->left = random_next(t) % (2 * gap - 1);
}

static void count(struct lt_waits *waits, uint64_t waited)
{
    waits->contended++;
    waits->wait_ticks += waited;
    if (waited > waits->wait_max)
        waits->wait_max = waited;
}

/* The same as for a wait that was published. */
static NOINLINE void hold_sampled(struct lt_thread *t, const struct wait_for *what,
                                  struct lt_lock_counters *counters, uint64_t since,
                                  uint64_t waited, uint32_t stack, uint16_t held_flags,
                                  const uintptr_t *frame)
{
    counters->counts.acquisitions++;
    struct lt_held *held =
        held_push(t, what->key, counters->lock, return_address(frame), since + waited,
                  held_flags | LT_HELD_TIMED | LT_HELD_CONTENDED);
    if (!held)
        return;
    held->wait_start = since;
    held->wait_ticks = waited;
    held->stack = stack;
    held->holder = what->holder;
}

void brief_wait_begins(struct lt_thread *t, struct wait_for *what, const uintptr_t *frame)
{
    if (UNLIKELY(!is_at_level(LT_LEVEL_CONTENDED)))
        return;
    uint32_t lock = counters_of_waited(t, what->key, what->type)->lock;
    if (UNLIKELY(histogram_is_full(t)))
        histogram_make_room(t);     /* after the wait the thread holds the lock */
    uint32_t mode = thread_busy(t); /* no signal handler uses the entry meanwhile */
    struct sampled_site *entry = site_entry(t, lock, (uint64_t)frame[1]);
    if (UNLIKELY((mode & LEVEL_MASK) >= LT_LEVEL_BLOCKS || entry->left == 0)) {
        what->stack = entry->stack = stack_capture(t, frame);
        plan_next(entry, t);
    }
    thread_ready(t, mode);
}

void brief_wait_ended(struct lt_thread *t, const struct wait_for *what, uint64_t since,
                      uint16_t held_flags, const uintptr_t *frame)
{
    uint64_t now = lt_now(), waited = now > since ? now - since : 0;
    if (UNLIKELY(watched() != t))
        return; /* the level is dormant now, or the process forked */
    struct lt_lock_counters *counters = counters_of_waited(t, what->key, what->type);
    count(waits_of(t, counters), waited);
    histogram_add(t, counters, LT_LINE_WAITS, waited);
    t->waited += waited;
    if (UNLIKELY(!is_at_level(LT_LEVEL_CONTENDED))) {
        hold_sampled(t, what, counters, since, waited, 0, held_flags, frame);
        return;
    }
    if (UNLIKELY(what->stack)) {
        control_check_claim(now);
        hold_sampled(t, what, counters, since, waited, what->stack, held_flags, frame);
        return;
    }
    const void *site = return_address(frame);
    uint32_t mode = thread_busy(t); /* no signal handler uses the entry meanwhile */
    struct sampled_site *entry = site_entry(t, counters->lock, (uint64_t)(uintptr_t)site);
    entry->left -= entry->left != 0;
    site_add(t, counters->lock, entry->stack, waited);
    thread_ready(t, mode);
    acquired(t, what->key, what->type, site, held_flags);
}
