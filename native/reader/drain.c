/* Copies the records of threads' rings again and again, so that none is overwritten before. */
#include "reader.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "slots.h"

/* Between two rounds. Full rings ask for short pauses. A round over idle rings costs a little for
 * each thread. So the longest pause is PAUSE_OF_ROUND times as long as the round, if the caller
 * allows so long a pause. Idle rings then cost a thousandth of a CPU. */
enum { SHORTEST_NS = 1000000, LONG_NS = 10000000, PAUSE_OF_ROUND = 1000 };
/* The fullest ring should be between a sixteenth and a quarter full. */
enum { PARTS = 16, FEW_PARTS = 1, MANY_PARTS = 4 };

/* The part of struct lt_thread that tells of the ring. */
struct ring_fields {
    uint64_t ring;
    uint32_t capacity;
    uint32_t table_seq;
    uint64_t head;
    uint64_t long_waits;
    uint64_t long_noted;
    uint64_t long_dropped;
};

_Static_assert(offsetof(struct lt_thread, long_waits_dropped) - offsetof(struct lt_thread, ring) ==
                   offsetof(struct ring_fields, long_dropped),
               "the fields of the ring follow each other");

/* Returns how many more records there is room for, if all of them are of one type. */
static uint32_t room(const struct lt_drain *drain)
{
    uint32_t used = drain->count + LT_LONG_WAITS; /* a thread may have as many long waits */

    if (used < drain->marked)
        used = drain->marked;
    return used < drain->capacity ? drain->capacity - used : 0;
}

/* Keeps the sound records of `count` that are no marks, and copies the marks. Returns how many
 * records it kept. */
static uint32_t keep_sound(struct lt_drain *drain, uint8_t *records, uint64_t count)
{
    uint32_t kept = 0;

    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * LT_RECORD_SIZE;
        if (slot_is_sound(record)) {
            if (kept != i)
                memcpy(records + (uint64_t)kept * LT_RECORD_SIZE, record, LT_RECORD_SIZE);
            kept++;
        } else if (slot_is_sound_mark(record)) {
            memcpy(drain->marks + (uint64_t)drain->marked++ * LT_RECORD_SIZE, record,
                   LT_RECORD_SIZE);
        } else {
            drain->damaged++;
        }
    }
    return kept;
}

/* Copies the records from `first` on, up to the head that `from` has. Returns 0 for damage. */
static int drain_ring(struct lt_drain *drain, struct lt_drained_block *state,
                      const struct ring_fields *from, uint64_t count, uint64_t head_at)
{
    uint64_t first = state->next;
    uint8_t *to = drain->records + (uint64_t)drain->count * LT_RECORD_SIZE;
    uint64_t index = first % from->capacity, valid = first, head_after;
    uint64_t before_wrap = count < from->capacity - index ? count : from->capacity - index;

    if (!lt_copy(drain->file, to, before_wrap * LT_RECORD_SIZE,
                 from->ring + index * LT_RECORD_SIZE) ||
        !lt_copy(drain->file, to + before_wrap * LT_RECORD_SIZE,
                 (count - before_wrap) * LT_RECORD_SIZE, from->ring) ||
        !lt_copy(drain->file, &head_after, sizeof head_after, head_at))
        return 0;
    /* Those before may be overwritten by now; the writer may be at work on one more. */
    if (head_after >= from->capacity && valid < head_after - from->capacity + 1)
        valid = head_after - from->capacity + 1;
    if (valid > first + count)
        valid = first + count;
    drain->lost += valid - first;
    if (valid > first && state->lost_to != first)
        state->lost_from = first;
    if (valid > first)
        state->lost_to = valid;
    memmove(to, to + (valid - first) * LT_RECORD_SIZE, (first + count - valid) * LT_RECORD_SIZE);
    drain->count += keep_sound(drain, to, first + count - valid);
    return 1;
}

static int is_lost(const struct lt_drained_block *state, uint64_t record)
{
    return record >= state->lost_from && record < state->lost_to;
}

/* Copies those of the long waits whose records the ring had lost. Returns 0 for damage. */
static int drain_long_waits(struct lt_drain *drain, struct lt_drained_block *state,
                            const struct ring_fields *from)
{
    struct lt_long_wait first[LT_LONG_WAITS], second[LT_LONG_WAITS];
    uint64_t latest = state->long_number;
    int is_complete = 1;

    if (!lt_copy(drain->file, first, sizeof first, from->long_waits) ||
        !lt_copy(drain->file, second, sizeof second, from->long_waits))
        return 0;
    for (int i = 0; i < LT_LONG_WAITS; i++) {
        uint64_t number = first[i].number;
        if (number != second[i].number || number > state->next) {
            is_complete = 0; /* the thread writes it, or the ring's record comes later */
            continue;
        }
        if (number <= latest)
            continue;
        if (number > state->long_number)
            state->long_number = number;
        if (!is_lost(state, number - 1) || !slot_is_sound(first[i].record))
            continue;
        memcpy(drain->records + (uint64_t)drain->count++ * LT_RECORD_SIZE, first[i].record,
               LT_RECORD_SIZE);
        drain->lost -= drain->lost > 0;
    }
    if (is_complete)
        state->long_noted = from->long_noted;
    return 1;
}

/* Copies the new records of the ring of one thread. Returns how many sixteenths of the ring they
 * took, -1 for damage. */
static int drain_new(struct lt_drain *drain, struct lt_drained_block *state,
                     const struct ring_fields *from, uint64_t head_at)
{
    uint64_t count, readable, new_ones;

    if (from->head < state->next)
        state->next = from->head; /* no library does so */
    count = from->head - state->next;
    readable = from->ring && from->capacity <= LT_RING_MAX ? from->capacity : 0;
    readable = readable ? readable - 1 : 0; /* the writer may be at work on one of the slots */
    if (count > readable) {
        state->lost_from = state->next;
        state->next = state->lost_to = from->head - readable;
        drain->lost += state->lost_to - state->lost_from;
    }
    count = new_ones = from->head - state->next;
    if (count > room(drain)) {
        count = room(drain);
        drain->has_more = 1;
    }
    if (count && !drain_ring(drain, state, from, count, head_at))
        return -1;
    state->next += count;
    return readable ? (int)(new_ones * PARTS / readable) : 0;
}

/* The same for one thread, with its long waits. */
static int drain_thread(struct lt_drain *drain, uint32_t index)
{
    uint64_t block = drain->blocks[index];
    struct lt_drained_block *state = &drain->state[index];
    struct ring_fields from;
    int filled = 0;

    if (!room(drain)) {
        drain->has_more = 1; /* the next call goes on here */
        return 0;
    }
    if (!lt_copy(drain->file, &from, sizeof from, block + offsetof(struct lt_thread, ring)))
        return -1;
    drain->dropped += from.long_dropped;
    if (from.head != state->next)
        filled = drain_new(drain, state, &from, block + offsetof(struct lt_thread, ring_head));
    if (filled >= 0 && from.long_waits && from.long_noted != state->long_noted &&
        !drain_long_waits(drain, state, &from))
        return -1;
    return filled;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sleeps until then, or until the deadline, which lt_hurry_drain() may move. */
static void pause_until(struct lt_drain *drain, uint64_t then)
{
    for (;;) {
        uint32_t hurries = __atomic_load_n(&drain->hurries, __ATOMIC_ACQUIRE);
        uint64_t deadline = __atomic_load_n(&drain->deadline_ns, __ATOMIC_RELAXED), now = now_ns();
        uint64_t end = deadline < then ? deadline : then;
        struct timespec left;

        if (now >= end)
            return;
        left.tv_sec = (time_t)((end - now) / 1000000000);
        left.tv_nsec = (long)((end - now) % 1000000000);
        syscall(SYS_futex, &drain->hurries, FUTEX_WAIT_PRIVATE, hurries, &left, NULL, 0);
    }
}

void lt_hurry_drain(struct lt_drain *drain)
{
    __atomic_store_n(&drain->deadline_ns, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&drain->hurries, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &drain->hurries, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static uint64_t between(uint64_t low, uint64_t value, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void adapt(struct lt_drain *drain, int fullest, uint64_t round_ns)
{
    uint64_t longest = between(LONG_NS, round_ns * PAUSE_OF_ROUND, drain->longest_ns);
    uint64_t pause = drain->pause_ns;

    if (fullest >= 2 * MANY_PARTS)
        pause /= 4;
    else if (fullest >= MANY_PARTS)
        pause /= 2;
    else if (fullest < FEW_PARTS)
        pause += pause / 4;
    drain->pause_ns = between(SHORTEST_NS, pause, longest);
}

/* Returns how full the fullest ring was, in sixteenths; -1 for damage. */
static int drain_all(struct lt_drain *drain)
{
    int fullest = 0;

    drain->dropped = 0;
    for (uint32_t i = 0; i < drain->threads; i++) {
        int filled = drain_thread(drain, i);
        if (filled < 0)
            return -1;
        if (filled > fullest)
            fullest = filled;
    }
    return fullest;
}

int lt_drain_rings(struct lt_drain *drain)
{
    drain->count = drain->marked = drain->damaged = 0;
    drain->lost = 0;
    for (;;) {
        uint64_t began, now;
        uint32_t threads;
        int fullest;

        pause_until(drain, drain->due_ns);
        began = now_ns();
        drain->due_ns = drain->has_more = 0;
        fullest = drain_all(drain);
        if (fullest < 0 || !lt_copy(drain->file, &threads, sizeof threads, drain->threads_at))
            return LT_DRAIN_DAMAGED;
        now = now_ns();
        adapt(drain, fullest, now - began);
        drain->has_more |= threads != drain->threads;
        if (drain->has_more)
            return LT_DRAIN_DONE;
        drain->due_ns = now + drain->pause_ns;
        if (drain->count >= drain->enough || drain->marked >= drain->enough ||
            drain->due_ns >= __atomic_load_n(&drain->deadline_ns, __ATOMIC_RELAXED))
            return LT_DRAIN_DONE;
    }
}
