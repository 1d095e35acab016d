/* Copies the new records of threads' rings, and finds the newest of many. */
#include "reader.h"

#include <string.h>

#include "slots.h"

/* Copies the records from `start` up to `head`. */
static int copy_records(const struct lt_mapping *file, const struct lt_ring *ring, uint64_t start,
                        uint8_t *to)
{
    uint64_t count = ring->head - start, at = count ? start % ring->capacity : 0;
    uint64_t before_wrap = count < ring->capacity - at ? count : ring->capacity - at;

    return lt_copy(file, to, before_wrap * LT_RECORD_SIZE, ring->at + at * LT_RECORD_SIZE) &&
           lt_copy(file, to + before_wrap * LT_RECORD_SIZE, (count - before_wrap) * LT_RECORD_SIZE,
                   ring->at);
}

int64_t lt_copy_rings(const struct lt_mapping *file, const struct lt_ring *rings, uint32_t count,
                      uint32_t quota, uint8_t *records)
{
    uint8_t *to = records;

    for (const struct lt_ring *ring = rings; ring < rings + count; ring++) {
        /* The writer may be at work on one of the slots. */
        uint64_t wanted = ring->head - ring->first, room = ring->capacity ? ring->capacity - 1 : 0;
        uint64_t head_after, start, valid;

        if (wanted > room)
            wanted = room;
        if (wanted > quota)
            wanted = quota;
        start = valid = ring->head - wanted;
        if (!copy_records(file, ring, start, to) ||
            !lt_copy(file, &head_after, sizeof head_after, ring->head_at))
            return -1;
        if (head_after >= ring->capacity && valid < head_after - ring->capacity + 1)
            valid = head_after - ring->capacity + 1; /* those before may be overwritten by now */
        if (valid > ring->head)
            valid = ring->head;
        memmove(to, to + (valid - start) * LT_RECORD_SIZE, (ring->head - valid) * LT_RECORD_SIZE);
        to += (ring->head - valid) * LT_RECORD_SIZE;
    }
    return (to - records) / LT_RECORD_SIZE;
}

uint32_t lt_count_sound(const uint8_t *records, uint32_t count)
{
    uint32_t sound = 0;

    for (uint32_t i = 0; i < count; i++)
        sound += slot_is_sound(records + (size_t)i * LT_RECORD_SIZE) != 0;
    return sound;
}

/* Moves `entry` down from the top of a heap whose least end is at the top. */
static void sink(struct lt_record_end *heap, uint32_t count, struct lt_record_end entry)
{
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < count && heap[child + 1].end < heap[child].end)
            child++;
        if (child >= count || heap[child].end >= entry.end)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

static void rise(struct lt_record_end *heap, uint32_t at, struct lt_record_end entry)
{
    while (at && heap[(at - 1) / 2].end > entry.end) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = entry;
}

uint32_t lt_newest_records(const uint8_t *records, uint32_t count, struct lt_record_end *newest,
                           uint32_t capacity)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *record = records + (size_t)i * LT_RECORD_SIZE;
        struct lt_record_end entry = {.end = slot_end(record), .index = i};

        if (found < capacity)
            rise(newest, found++, entry);
        else if (capacity && entry.end > newest[0].end)
            sink(newest, capacity, entry);
    }
    return found;
}
