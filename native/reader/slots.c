/* Packs the records of rings for a recording, and unpacks them. */
#include "slots.h"

#include "locktop/kind_sets.h"
#include "reader.h"

/* The columns with four and with eight bytes. Records of one thread begin soon after each
 * other, so the differences of their starts are small. Waits and holds are small by themselves. */
static const uint8_t narrow[] = {SLOT_TID, SLOT_LOCK, SLOT_STACK, SLOT_HOLDER};
static const uint8_t wide[] = {SLOT_START, SLOT_WAIT, SLOT_HOLD, SLOT_SITE};

enum { NARROW = sizeof narrow, WIDE = sizeof wide };

static uint64_t folded(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static uint64_t unfolded(uint64_t number)
{
    return number >> 1 ^ (0 - (number & 1));
}

static uint8_t *put(uint8_t *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

/* Returns the byte behind the number; NULL if the bytes end before. */
static const uint8_t *get(const uint8_t *from, const uint8_t *end, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; from < end && shift < 64; shift += 7) {
        *number |= (uint64_t)(*from & 0x7f) << shift;
        if (!(*from++ & 0x80))
            return from;
    }
    return NULL;
}

static int is_small_by_itself(uint8_t column)
{
    return column == SLOT_WAIT || column == SLOT_HOLD;
}

uint64_t lt_pack_records(const uint8_t *records, uint32_t count, uint8_t *packed)
{
    const uint8_t *end = records + (uint64_t)count * LT_RECORD_SIZE, *record;
    uint8_t *to = packed;

    for (record = records; record < end; record += LT_RECORD_SIZE)
        *to++ = record[SLOT_TYPE];
    for (record = records; record < end; record += LT_RECORD_SIZE)
        *to++ = record[SLOT_KIND];
    for (int i = 0; i < NARROW; i++) {
        uint32_t before = 0;
        for (record = records + narrow[i]; record < end; record += LT_RECORD_SIZE) {
            uint32_t number = slot_u32(record);
            to = put(to, folded((uint64_t)(int64_t)(int32_t)(number - before)));
            before = number;
        }
    }
    for (int i = 0; i < WIDE; i++) {
        uint64_t before = 0;
        for (record = records + wide[i]; record < end; record += LT_RECORD_SIZE) {
            uint64_t number = slot_u64(record);
            to = put(to, is_small_by_itself(wide[i]) ? number : folded(number - before));
            before = number;
        }
    }
    return (uint64_t)(to - packed);
}

/* Writes the bytes that are the same in all records. */
static void put_frame(uint8_t *record, uint8_t type, uint8_t kind)
{
    memset(record, 0, LT_RECORD_SIZE);
    record[0] = SLOT_EVENT;
    record[SLOT_TYPE] = type;
    record[SLOT_KIND] = kind;
    for (int i = 0; i < NARROW; i++)
        record[narrow[i] - 1] = 0xce;
    for (int i = 0; i < WIDE; i++)
        record[wide[i] - 1] = 0xcf;
    record[SLOT_PADDING] = 0xc4;
    record[SLOT_PADDING + 1] = 3;
}

static const uint8_t *get_narrow(const uint8_t *from, const uint8_t *packed_end, uint8_t *record,
                                 const uint8_t *end)
{
    uint32_t before = 0;

    for (; from && record < end; record += LT_RECORD_SIZE) {
        uint64_t number;
        uint32_t big;
        from = get(from, packed_end, &number);
        before += (uint32_t)unfolded(number);
        big = __builtin_bswap32(before);
        memcpy(record, &big, sizeof big);
    }
    return from;
}

static const uint8_t *get_wide(const uint8_t *from, const uint8_t *packed_end, uint8_t *record,
                               const uint8_t *end, int is_small)
{
    uint64_t before = 0;

    for (; from && record < end; record += LT_RECORD_SIZE) {
        uint64_t number, big;
        from = get(from, packed_end, &number);
        before = is_small ? number : before + unfolded(number);
        big = __builtin_bswap64(before);
        memcpy(record, &big, sizeof big);
    }
    return from;
}

int lt_unpack_records(const uint8_t *packed, uint64_t size, uint8_t *records, uint32_t count)
{
    const uint8_t *from = packed + 2 * (uint64_t)count, *packed_end = packed + size;
    uint8_t *end = records + (uint64_t)count * LT_RECORD_SIZE;

    if (size < 2 * (uint64_t)count)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        put_frame(records + (uint64_t)i * LT_RECORD_SIZE, packed[i], packed[count + i]);
    for (int i = 0; from && i < NARROW; i++)
        from = get_narrow(from, packed_end, records + narrow[i], end);
    for (int i = 0; from && i < WIDE; i++)
        from = get_wide(from, packed_end, records + wide[i], end, is_small_by_itself(wide[i]));
    return from == packed_end;
}

static int has_waited(const uint8_t *record, uint64_t ticks)
{
    return slot_u64(record + SLOT_WAIT) >= ticks;
}

/* Waits for other locks are mostly waits for work. */
static int is_of_contention(const uint8_t *record)
{
    uint8_t kind = record[SLOT_KIND] & (uint8_t)~LT_KIND_SHARED;

    return lt_kind_is_in(LT_KINDS_OF_CONTENTION, kind);
}

uint32_t lt_long_waits(const uint8_t *records, uint32_t count, uint64_t ticks, uint8_t *output,
                       uint32_t capacity)
{
    const uint8_t *end = records + (uint64_t)count * LT_RECORD_SIZE;
    uint32_t number = 0, contended = 0, others;

    for (const uint8_t *record = records; record < end; record += LT_RECORD_SIZE)
        contended += has_waited(record, ticks) && is_of_contention(record);
    others = contended < capacity ? capacity - contended : 0;
    for (const uint8_t *record = records; record < end && number < capacity;
         record += LT_RECORD_SIZE) {
        if (!has_waited(record, ticks) || (!is_of_contention(record) && !others))
            continue;
        others -= !is_of_contention(record);
        memcpy(output + (uint64_t)number++ * LT_RECORD_SIZE, record, LT_RECORD_SIZE);
    }
    return number;
}

/* Returns the least of the numbers at one offset of each slot; 0 without slots. */
static uint64_t first_of(const uint8_t *slots, uint32_t count, uint32_t offset)
{
    uint64_t first = count ? UINT64_MAX : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = slot_u64(slots + (uint64_t)i * LT_RECORD_SIZE + offset);
        if (start < first)
            first = start;
    }
    return first;
}

uint64_t lt_first_start(const uint8_t *records, uint32_t count)
{
    return first_of(records, count, SLOT_START);
}

uint64_t lt_first_mark(const uint8_t *marks, uint32_t count)
{
    return first_of(marks, count, SLOT_MARK_START);
}

uint32_t lt_pick_span(const uint8_t *records, uint32_t count, uint64_t from, uint64_t to,
                      uint8_t *output)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *record = records + (uint64_t)i * LT_RECORD_SIZE;
        uint64_t start = slot_u64(record + SLOT_START);
        if (start < to && slot_end(record) >= from)
            memcpy(output + (uint64_t)number++ * LT_RECORD_SIZE, record, LT_RECORD_SIZE);
    }
    return number;
}

/* Returns whether one of the sorted moments is in a span. */
static int has_moment(const uint64_t *moments, uint32_t count, uint64_t from, uint64_t to)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (moments[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && moments[low] <= to;
}

uint32_t lt_pick_moments(const uint8_t *records, uint32_t count, const uint64_t *moments,
                         uint32_t moment_count, uint8_t *output)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *record = records + (uint64_t)i * LT_RECORD_SIZE;
        uint64_t start = slot_u64(record + SLOT_START);
        if (has_moment(moments, moment_count, start, slot_end(record)))
            memcpy(output + (uint64_t)number++ * LT_RECORD_SIZE, record, LT_RECORD_SIZE);
    }
    return number;
}
