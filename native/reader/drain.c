/* Copies the records of threads' rings again and again, so that none is overwritten before. */
#include "reader.h"

#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "slots.h"

/* Between two rounds. Full rings ask for short pauses. A round over idle rings costs a little for
 * each thread. So the longest pause is PAUSE_OF_ROUND times as long as the round. */
enum { SHORTEST_NS = 1000000, LONG_NS = 10000000, LONGEST_NS = 100000000, PAUSE_OF_ROUND = 200 };
/* The fullest ring should be between a sixteenth and a quarter full. */
enum { PARTS = 16, FEW_PARTS = 1, MANY_PARTS = 4 };

/* The part of struct lt_thread that tells of the ring. */
struct ring_fields {
    uint64_t ring;
    uint32_t capacity;
    uint32_t table_seq;
    uint64_t head;
};

_Static_assert(offsetof(struct lt_thread, ring_head) - offsetof(struct lt_thread, ring) ==
                   offsetof(struct ring_fields, head),
               "the fields of the ring follow each other");

static int copy(int fd, void *to, uint64_t size, uint64_t offset)
{
    return size == 0 || pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* Keeps the sound records of `count` that are no marks. Returns their number. */
static uint32_t keep_sound(struct lt_drain *drain, uint8_t *records, uint64_t count)
{
    uint32_t kept = 0;

    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * LT_RECORD_SIZE;
        if (slot_is_sound(record)) {
            if (kept != i)
                memcpy(records + (uint64_t)kept * LT_RECORD_SIZE, record, LT_RECORD_SIZE);
            kept++;
        } else if (*record != SLOT_MARK) {
            drain->damaged++;
        }
    }
    return kept;
}

/* Copies the records from `first` on, up to the head that `from` has. Returns 0 for damage. */
static int drain_ring(struct lt_drain *drain, const struct ring_fields *from, uint64_t first,
                      uint64_t count, uint64_t head_at)
{
    uint8_t *to = drain->records + (uint64_t)drain->count * LT_RECORD_SIZE;
    uint64_t at = first % from->capacity, valid = first, head_after;
    uint64_t before_wrap = count < from->capacity - at ? count : from->capacity - at;

    if (!copy(drain->fd, to, before_wrap * LT_RECORD_SIZE, from->ring + at * LT_RECORD_SIZE) ||
        !copy(drain->fd, to + before_wrap * LT_RECORD_SIZE, (count - before_wrap) * LT_RECORD_SIZE,
              from->ring) ||
        !copy(drain->fd, &head_after, sizeof head_after, head_at))
        return 0;
    /* Those before may be overwritten by now; the writer may be at work on one more. */
    if (head_after >= from->capacity && valid < head_after - from->capacity + 1)
        valid = head_after - from->capacity + 1;
    if (valid > first + count)
        valid = first + count;
    drain->lost += valid - first;
    memmove(to, to + (valid - first) * LT_RECORD_SIZE, (first + count - valid) * LT_RECORD_SIZE);
    drain->count += keep_sound(drain, to, first + count - valid);
    return 1;
}

/* Copies the new records of one thread. Returns how many sixteenths of the ring they took, -1 for
 * damage. */
static int drain_thread(struct lt_drain *drain, uint32_t index)
{
    uint64_t block = drain->blocks[index], *next = &drain->next[index], count;
    uint64_t head_at = block + offsetof(struct lt_thread, ring_head), first, room;
    struct ring_fields from;

    if (!copy(drain->fd, &from, sizeof from, block + offsetof(struct lt_thread, ring)))
        return -1;
    if (from.head == *next)
        return 0;
    if (from.head < *next)
        *next = from.head; /* no library does so */
    count = from.head - *next;
    room = from.ring && from.capacity <= LT_RING_MAX ? from.capacity : 0;
    room = room ? room - 1 : 0; /* the writer may be at work on one of the slots */
    first = count > room ? from.head - room : *next;
    drain->lost += first - *next;
    *next = first;
    count = from.head - first;
    if (count > drain->capacity - drain->count) {
        count = drain->capacity - drain->count;
        drain->has_more = 1;
    }
    if (count && !drain_ring(drain, &from, first, count, head_at))
        return -1;
    *next = first + count;
    return room ? (int)((from.head - first) * PARTS / room) : 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
                            .tv_nsec = (long)(ns % 1000000000)};

    nanosleep(&time, NULL);
}

static uint64_t between(uint64_t low, uint64_t value, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void adapt(struct lt_drain *drain, int fullest, uint64_t round_ns)
{
    uint64_t longest = between(LONG_NS, round_ns * PAUSE_OF_ROUND, LONGEST_NS);
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
    drain->count = drain->damaged = 0;
    drain->lost = 0;
    for (;;) {
        uint64_t began = now_ns(), now, left;
        uint32_t threads;
        int fullest;

        drain->has_more = 0;
        fullest = drain_all(drain);
        if (fullest < 0 || !copy(drain->fd, &threads, sizeof threads, drain->threads_at))
            return LT_DRAIN_DAMAGED;
        now = now_ns();
        adapt(drain, fullest, now - began);
        drain->has_more |= threads != drain->threads;
        if (threads != drain->threads || drain->count >= drain->enough || now >= drain->deadline_ns)
            return LT_DRAIN_DONE;
        left = drain->deadline_ns - now;
        sleep_ns(left < drain->pause_ns ? left : drain->pause_ns);
    }
}
