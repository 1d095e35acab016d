/* Encodes events as msgpack records, and appends them to the thread's ring. */
#include "account/event_ring.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "account/account_state.h"
#include "base/compiler.h"
#include "base/settings.h"
#include "shm/arena.h"
#include "shm/segment.h"

/* the names of msgpack (github.com/msgpack/msgpack, spec.md) */
enum { FIXARRAY = 0x90, BIN8 = 0xc4, UINT32 = 0xce, UINT64 = 0xcf, STR8 = 0xd9 };
enum { ELEMENTS = 11, PADDING = 3, MARK_ELEMENTS = 5 };

static uint8_t *put_u32(uint8_t *to, uint32_t value)
{
    uint32_t big = __builtin_bswap32(value);
    *to = UINT32;
    memcpy(to + 1, &big, sizeof big);
    return to + 1 + sizeof big;
}

static uint8_t *put_u64(uint8_t *to, uint64_t value)
{
    uint64_t big = __builtin_bswap64(value);
    *to = UINT64;
    memcpy(to + 1, &big, sizeof big);
    return to + 1 + sizeof big;
}

/* Encodes eight words, the highest byte first: bytes one by one would take three times as many
 * stores. */
void event_encode(uint8_t *to, uint32_t tid, const struct lock_event *event)
{
    enum { ARRAY = FIXARRAY | ELEMENTS };
    uint64_t lock = event->lock, stack = event->stack, holder = event->holder;
    const uint64_t word[] = {
        (uint64_t)ARRAY << 56 | (uint64_t)event->type << 48 | (uint64_t)event->kind << 40 |
            (uint64_t)UINT32 << 32 | tid,
        (uint64_t)UINT32 << 56 | lock << 24 | UINT32 << 16 | stack >> 16,
        stack << 48 | (uint64_t)UINT32 << 40 | holder << 8 | UINT64,
        event->start,
        (uint64_t)UINT64 << 56 | event->wait >> 8,
        event->wait << 56 | (uint64_t)UINT64 << 48 | event->hold >> 16,
        event->hold << 48 | (uint64_t)UINT64 << 40 | event->site >> 24,
        event->site << 40 | (uint64_t)BIN8 << 32 | PADDING << 24,
    };
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        uint64_t big = __builtin_bswap64(word[i]);
        memcpy(to + 8 * i, &big, sizeof big);
    }
}

void mark_encode(uint8_t *to, uint32_t tid, uint64_t now, const char *text)
{
    size_t length = strnlen(text, LT_MARK_TEXT);
    *to++ = FIXARRAY | MARK_ELEMENTS;
    *to++ = LT_RECORD_MARK;
    to = put_u32(to, tid);
    to = put_u64(to, now);
    *to++ = STR8;
    *to++ = LT_MARK_TEXT;
    memset(to, 0, LT_MARK_TEXT);
    memcpy(to, text, length);
    to += LT_MARK_TEXT;
    *to++ = BIN8;
    *to++ = 0;
}

static NOINLINE bool ring_make(struct lt_thread *t)
{
    uint32_t records = lt_settings.ring_records;
    uint64_t offset = shm_alloc((uint64_t)records * LT_RECORD_SIZE);
    while (!offset && records / 2 > RING_RECORDS_MIN) /* a short ring is better than none */
        offset = shm_alloc_spare((uint64_t)(records /= 2) * LT_RECORD_SIZE);
    if (!offset)
        offset = shm_alloc_last((uint64_t)(records = RING_RECORDS_MIN) * LT_RECORD_SIZE);
    if (records < lt_settings.ring_records)
        __atomic_fetch_or(&lt_shm->notes, LT_NOTE_SHORT_RINGS, __ATOMIC_RELAXED);
    if (!offset)
        return false;
    account_state(t)->ring = shm_ptr(offset);
    t->ring_capacity = records;
    __atomic_store_n(&t->ring, offset, __ATOMIC_RELEASE);
    return true;
}

/* The address of the next record, or NULL if there is no room for a ring. */
static uint8_t *ring_begin(struct lt_thread *t)
{
    struct account_state *state = account_state(t);
    if (UNLIKELY(!state->ring) && !ring_make(t))
        return NULL;
    return state->ring + (t->ring_head & (t->ring_capacity - 1)) * LT_RECORD_SIZE;
}

static void ring_end(struct lt_thread *t)
{
    /* Release: a reader that sees the head sees the record. */
    __atomic_store_n(&t->ring_head, t->ring_head + 1, __ATOMIC_RELEASE);
    /* The head stands before the next record begins. So a reader that finds the head unmoved knows
     * that at most the record behind the head was being written. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* No calls: at the level that records every hold, this is most of what a hold costs. */
__attribute__((flatten)) void ring_write(struct lt_thread *t, const struct lock_event *event)
{
    uint8_t *to = ring_begin(t);
    if (to)
        event_encode(to, t->tid, event);
    ring_end(t);
}

void ring_write_mark(struct lt_thread *t, uint64_t now, const char *text)
{
    uint8_t *to = ring_begin(t);
    if (to)
        mark_encode(to, t->tid, now, text);
    ring_end(t);
}
