/* The slots of a ring: struct lt_record in abi.h draws them. */
#ifndef LOCKTOP_SLOTS_H
#define LOCKTOP_SLOTS_H

#include <stdint.h>
#include <string.h>

#include "locktop/abi.h"

enum { SLOT_EVENT = 0x9b, SLOT_MARK = 0x95, SLOT_MARK_START = 8, LT_RING_MAX = 1 << 20 };

/* Where the numbers of an event lie. Each is big-endian, and a byte with its type is before it. */
enum {
    SLOT_TYPE = 1,
    SLOT_KIND = 2,
    SLOT_TID = 4,
    SLOT_LOCK = 9,
    SLOT_STACK = 14,
    SLOT_HOLDER = 19,
    SLOT_START = 24,
    SLOT_WAIT = 33,
    SLOT_HOLD = 42,
    SLOT_SITE = 51,
    SLOT_PADDING = 59
};

static inline uint64_t slot_u64(const uint8_t *bytes)
{
    uint64_t number;

    memcpy(&number, bytes, sizeof number);
    return __builtin_bswap64(number);
}

static inline uint32_t slot_u32(const uint8_t *bytes)
{
    uint32_t number;

    memcpy(&number, bytes, sizeof number);
    return __builtin_bswap32(number);
}

static inline uint64_t slot_sum(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

/* Ticks when the event was over. */
static inline uint64_t slot_end(const uint8_t *slot)
{
    uint64_t wait_end = slot_sum(slot_u64(slot + SLOT_START), slot_u64(slot + SLOT_WAIT));

    return slot_sum(wait_end, slot_u64(slot + SLOT_HOLD));
}

static inline int slot_is_sound(const uint8_t *slot)
{
    static const uint8_t padding[] = {0xc4, 3, 0, 0, 0};

    return slot[0] == SLOT_EVENT && slot[SLOT_TYPE] >= LT_RECORD_WAIT &&
           slot[SLOT_TYPE] <= LT_RECORD_RELEASE && slot[SLOT_TYPE] != LT_RECORD_MARK &&
           slot[SLOT_KIND] < 0x80 && slot[SLOT_TID - 1] == 0xce && slot[SLOT_LOCK - 1] == 0xce &&
           slot[SLOT_STACK - 1] == 0xce && slot[SLOT_HOLDER - 1] == 0xce &&
           slot[SLOT_START - 1] == 0xcf && slot[SLOT_WAIT - 1] == 0xcf &&
           slot[SLOT_HOLD - 1] == 0xcf && slot[SLOT_SITE - 1] == 0xcf &&
           memcmp(slot + SLOT_PADDING, padding, sizeof padding) == 0;
}

/* The same for a mark of the user. */
static inline int slot_is_sound_mark(const uint8_t *slot)
{
    return slot[0] == SLOT_MARK && slot[SLOT_TYPE] == LT_RECORD_MARK && slot[2] == 0xce &&
           slot[SLOT_MARK_START - 1] == 0xcf && slot[16] == 0xd9 && slot[17] == LT_MARK_TEXT &&
           slot[62] == 0xc4 && slot[63] == 0;
}

#endif
