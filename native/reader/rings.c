/* Copies the new records of threads' rings, and finds the newest of many. */
#include "reader.h"

#include <string.h>

#include "slots.h"

/* Copies the records from `start` up to `head`. */
static int copy_records(const struct lt_mapping *file, const struct lt_ring *ring, uint64_t start,
                        uint8_t *to)
{
    uint64_t count = ring->head - start, index = count ? start % ring->capacity : 0;
    uint64_t before_wrap = count < ring->capacity - index ? count : ring->capacity - index;

    return lt_copy(file, to, before_wrap * LT_RECORD_SIZE, ring->offset + index * LT_RECORD_SIZE) &&
           lt_copy(file, to + before_wrap * LT_RECORD_SIZE, (count - before_wrap) * LT_RECORD_SIZE,
                   ring->offset);
}

/* Copies the new records of one ring. Returns their number, -1 for a damaged ring. */
static int64_t copy_new(const struct lt_ring_copy *copy, const struct lt_ring *ring, uint8_t *to)
{
    /* The writer may be at work on one of the slots. */
    uint64_t capacity = ring->offset ? ring->capacity : 0, room = capacity ? capacity - 1 : 0;
    uint64_t wanted = ring->head > ring->first ? ring->head - ring->first : 0;
    uint64_t head_after, start, valid;

    if (capacity > LT_MAX_RING)
        return -1;
    if (wanted > room)
        wanted = room;
    if (wanted > copy->quota)
        wanted = copy->quota;
    start = valid = ring->head - wanted;
    if (!copy_records(copy->file, ring, start, to) ||
        !lt_copy(copy->file, &head_after, sizeof head_after, ring->head_at))
        return -1;
    if (head_after >= capacity && valid < head_after - capacity + 1)
        valid = head_after - capacity + 1; /* those before may be overwritten by now */
    if (valid > ring->head)
        valid = ring->head;
    memmove(to, to + (valid - start) * LT_RECORD_SIZE, (ring->head - valid) * LT_RECORD_SIZE);
    return (int64_t)(ring->head - valid);
}

int64_t lt_copy_rings(struct lt_ring_copy *copy)
{
    int64_t copied = 0;

    for (uint32_t left = copy->at_once; left && copy->next < copy->count; copy->next++) {
        struct lt_ring *ring = &copy->rings[copy->next];
        int64_t count;

        if (ring->head == ring->first)
            continue;
        count = copy_new(copy, ring, copy->records + copied * LT_RECORD_SIZE);
        if (count < 0)
            return -1;
        /* A smaller head is that of another ring than the one that was followed. */
        copy->written += ring->head > ring->first ? ring->head - ring->first : 0;
        ring->first = ring->head;
        copied += count;
        left--;
    }
    return copied;
}

uint32_t lt_count_new_rings(const struct lt_ring *rings, uint32_t count)
{
    uint32_t result = 0;

    for (uint32_t i = 0; i < count; i++)
        result += rings[i].head != rings[i].first;
    return result;
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
    uint32_t index = 0;

    for (;;) {
        uint32_t child = 2 * index + 1;
        if (child + 1 < count && heap[child + 1].end < heap[child].end)
            child++;
        if (child >= count || heap[child].end >= entry.end)
            break;
        heap[index] = heap[child];
        index = child;
    }
    heap[index] = entry;
}

static void rise(struct lt_record_end *heap, uint32_t index, struct lt_record_end entry)
{
    while (index && heap[(index - 1) / 2].end > entry.end) {
        heap[index] = heap[(index - 1) / 2];
        index = (index - 1) / 2;
    }
    heap[index] = entry;
}

uint32_t lt_newest_records(const uint8_t *records, uint32_t count, struct lt_record_end *newest,
                           uint32_t capacity)
{
    uint32_t result = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *record = records + (size_t)i * LT_RECORD_SIZE;
        struct lt_record_end entry = {.end = slot_end(record), .index = i};

        if (result < capacity)
            rise(newest, result++, entry);
        else if (capacity && entry.end > newest[0].end)
            sink(newest, capacity, entry);
    }
    return result;
}
