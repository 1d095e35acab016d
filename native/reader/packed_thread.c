/* Writes threads as msgpack arrays, which Python decodes many at a time. */
#include "reader.h"

#include <stddef.h>
#include <string.h>

enum { SINCE_IS_SET = LT_HELD_TIMED | LT_HELD_RECORDED | LT_HELD_MET };
enum { EPOCH_SHIFT = 8 }; /* of lt_control.mode */

/* ---- msgpack ---- */

static uint8_t *put_bytes(uint8_t *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    return to + size;
}

static uint8_t *put_number(uint8_t *to, uint64_t value)
{
    uint64_t big_endian = __builtin_bswap64(value);

    if (value < 0x80) {
        *to = (uint8_t)value;
        return to + 1;
    }
    if (value <= UINT32_MAX) {
        *to = 0xce;
        return put_bytes(to + 1, (const uint8_t *)&big_endian + 4, 4);
    }
    *to = 0xcf;
    return put_bytes(to + 1, &big_endian, 8);
}

static uint8_t *put_array(uint8_t *to, uint32_t count)
{
    *to++ = 0xdc;
    *to++ = (uint8_t)(count >> 8);
    *to++ = (uint8_t)count;
    return to;
}

static uint8_t *put_binary_head(uint8_t *to, uint32_t size)
{
    *to++ = 0xc5;
    *to++ = (uint8_t)(size >> 8);
    *to++ = (uint8_t)size;
    return to;
}

static uint8_t *put_binary(uint8_t *to, const void *from, uint32_t size)
{
    return put_bytes(put_binary_head(to, size), from, size);
}

static uint8_t *put_nil(uint8_t *to)
{
    *to = 0xc0;
    return to + 1;
}

static uint8_t *put_numbers(uint8_t *to, uint32_t count, const uint64_t *values)
{
    for (uint32_t i = 0; i < count; i++)
        to = put_number(to, values[i]);
    return to;
}

#define COUNT_OF(...)        (sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
#define PUT_NUMBERS(to, ...) put_numbers(to, COUNT_OF(__VA_ARGS__), (uint64_t[]){__VA_ARGS__})

/* ---- a thread ---- */

static uint8_t *put_block(uint8_t *to, const struct lt_thread *block)
{
    to = put_array(to, 11);
    to = PUT_NUMBERS(to, block->state, block->tid, block->birth, block->pthread, block->mode);
    to = put_binary(to, block->name, sizeof block->name);
    return PUT_NUMBERS(to, block->held, block->held_size, block->held_top, block->ring,
                       block->ring_capacity);
}

static uint8_t *put_wait(uint8_t *to, const struct lt_wait *wait)
{
    return PUT_NUMBERS(put_array(to, 9), wait->seq, wait->flags, wait->key, wait->lock, wait->stack,
                       wait->since, wait->site, wait->holder, wait->parties);
}

static uint8_t *put_entry(uint8_t *to, const struct lt_held *held)
{
    uint64_t since = held->flags & SINCE_IS_SET ? held->since : 0;

    return PUT_NUMBERS(put_array(to, 10), held->key, held->lock, held->depth, held->flags,
                       held->site, since, held->wait_start, held->wait_ticks, held->stack,
                       held->holder);
}

static uint8_t *put_held(uint8_t *to, const struct lt_thread *block)
{
    uint32_t bytes = block->held_top < block->held_size ? block->held_top : block->held_size;
    uint32_t listed = bytes / sizeof(struct lt_held), count = 0;

    for (uint32_t i = 0; i < listed; i++)
        count += block->held_inline[i].key != 0;
    to = put_array(to, count);
    for (uint32_t i = 0; i < listed; i++) {
        if (block->held_inline[i].key)
            to = put_entry(to, &block->held_inline[i]);
    }
    return to;
}

static uint64_t sum_of(const uint64_t *values, uint32_t kinds)
{
    uint64_t sum = 0;

    for (int kind = 0; kind < LT_KINDS; kind++)
        sum += kinds >> kind & 1 ? values[kind] : 0;
    return sum;
}

/* Pairs of each kind and its value, without the zeros. */
static uint8_t *put_by_kind(uint8_t *to, const uint64_t *values)
{
    uint32_t count = 0;

    for (int kind = 0; kind < LT_KINDS; kind++)
        count += values[kind] != 0;
    to = put_array(to, count);
    for (int kind = 0; kind < LT_KINDS; kind++) {
        if (values[kind]) {
            to = put_array(to, 2);
            to = put_number(to, (uint64_t)kind);
            to = put_number(to, values[kind]);
        }
    }
    return to;
}

/* The waits in contention of the thread that was read last, as PackedHistogram (histograms.py) has
 * them. Nils tell that they were not read. */
static uint8_t *put_histogram(uint8_t *to, const struct lt_thread_read *read)
{
    const struct lt_thread_sum *sum = &read->sum;
    uint64_t counts[LT_BUCKETS];
    uint8_t buckets[LT_BUCKETS];
    uint32_t picked = 0;

    if (read->skips_lines)
        return put_nil(put_nil(to));
    if (sum->counted) {
        memcpy(counts, read->lines.waits, sizeof counts);
        picked = lt_pick_counts(counts, buckets);
    }
    to = put_binary_head(to, picked * (uint32_t)(sizeof *buckets + sizeof *counts));
    to = put_bytes(to, buckets, picked * sizeof *buckets);
    to = put_bytes(to, counts, picked * sizeof *counts);
    return put_number(to, sum->left_out);
}

void lt_pack_thread(struct lt_thread_read *read, uint32_t index, uint64_t offset, int knows_block)
{
    const struct lt_thread *block = &read->block;
    const struct lt_thread_sum *sum = &read->sum;
    uint8_t *to = read->packed + read->packed_size;
    int waits = block->wait.key && !(block->wait.seq & 1);

    to = put_array(to, 13);
    to = put_number(to, index);
    to = put_number(to, offset);
    to = knows_block ? put_nil(to) : put_block(to, block);
    to = waits ? put_wait(to, &block->wait) : put_nil(to);
    /* A thread that has not seen the present epoch may have missed releases. */
    if (waits || block->mode >> EPOCH_SHIFT == read->mode >> EPOCH_SHIFT)
        to = put_held(to, block);
    else
        to = put_array(to, 0);
    to = put_number(to, read->now);
    to = put_number(to, sum_of(sum->acquisitions, read->contention));
    to = put_number(to, sum_of(sum->contended, read->contention));
    to = put_by_kind(to, sum->wait_ticks);
    to = put_number(to, sum->use_count);
    to = put_binary(to, sum->uses, sum->use_count * (uint32_t)sizeof *sum->uses);
    to = put_histogram(to, read);
    read->packed_size = (uint64_t)(to - read->packed);
    read->packed_count++;
}
