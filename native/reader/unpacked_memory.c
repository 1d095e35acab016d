/* Estimates the memory of the Python objects that a msgpack value stands for.
 *
 * A map with a text as its first key is a struct, and its keys become no objects. Another map is a
 * dictionary. */
#include "unpacked_memory.h"

#include <stddef.h>

/* Bytes of CPython on a 64-bit machine. */
enum {
    SMALL = 8,     /* a pointer, also to an object that exists once: None, a small number */
    NUMBER = 32,   /* another number */
    TEXT = 56,     /* and its length */
    SEQUENCE = 64, /* a tuple of any length, with what the garbage collector adds */
    MAP = 96,      /* a struct with some fields that have defaults, or an empty dictionary */
    ENTRY = 96     /* the room of an entry of a dictionary */
};

enum { DEEPEST = 64 }; /* far deeper than a snapshot */

/* A sequence or a map that has begun. */
struct level {
    uint64_t open; /* values that are still to come, and keys */
    int is_struct; /* an even number of open values: the next one is a key, which is free */
};

struct values {
    const uint8_t *data;
    uint64_t size;
    uint64_t offset;
    uint64_t bytes;
    uint32_t depth;
    struct level levels[DEEPEST];
};

static uint64_t number(const uint8_t *data, uint64_t width)
{
    uint64_t value = 0;

    for (uint64_t i = 0; i < width; i++)
        value = value << 8 | data[i];
    return value;
}

/* Whether `count` more bytes are there. */
static int has(const struct values *values, uint64_t count)
{
    return count <= values->size - values->offset;
}

/* Reads the length of a value, `width` bytes. */
static int length_of(struct values *values, uint64_t width, uint64_t *length)
{
    if (!has(values, width))
        return 0;
    *length = number(values->data + values->offset, width);
    values->offset += width;
    return 1;
}

/* Takes the content of a text, or of other bytes. */
static int content(struct values *values, uint64_t length, uint64_t object)
{
    if (!has(values, length))
        return 0;
    values->offset += length;
    values->bytes += object + length;
    return 1;
}

static int enter(struct values *values, uint64_t open, int is_struct)
{
    if (values->depth == DEEPEST || !has(values, open)) /* each value has one byte at least */
        return 0;
    values->levels[values->depth++] = (struct level){open, is_struct};
    return 1;
}

static int sequence(struct values *values, uint64_t length)
{
    values->bytes += SEQUENCE + SMALL * length;
    return enter(values, length, 0);
}

/* Whether a text begins here. */
static int is_text(const struct values *values)
{
    uint8_t first = has(values, 1) ? values->data[values->offset] : 0;

    return (first & 0xe0) == 0xa0 || (first >= 0xd9 && first <= 0xdb);
}

static int map(struct values *values, uint64_t length)
{
    int is_struct = is_text(values);

    values->bytes += MAP + (is_struct ? SMALL : ENTRY) * length;
    return enter(values, 2 * length, is_struct);
}

static int scalar(struct values *values, uint64_t width)
{
    return content(values, width, NUMBER);
}

/* Takes a value whose first byte is from 0xc0 to 0xdf. */
static int other(struct values *values, uint8_t first)
{
    static const uint8_t widths[] = {1, 2, 4};
    uint64_t length;

    switch (first) {
    case 0xc0:
    case 0xc2:
    case 0xc3: return 1;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return length_of(values, widths[first - 0xc4], &length) && content(values, length, TEXT);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return length_of(values, widths[first - 0xc7], &length) && content(values, length, TEXT) &&
               scalar(values, 1);
    case 0xca: return scalar(values, 4);
    case 0xcb: return scalar(values, 8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return scalar(values, 1u << (first - 0xcc));
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: return scalar(values, 1u << (first - 0xd0));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8: return scalar(values, 1 + (1u << (first - 0xd4)));
    case 0xd9:
    case 0xda:
    case 0xdb:
        return length_of(values, widths[first - 0xd9], &length) && content(values, length, TEXT);
    case 0xdc:
    case 0xdd: return length_of(values, first == 0xdc ? 2 : 4, &length) && sequence(values, length);
    case 0xde:
    case 0xdf: return length_of(values, first == 0xde ? 2 : 4, &length) && map(values, length);
    default: return 0;
    }
}

static int value(struct values *values)
{
    uint8_t first = values->data[values->offset++];

    if (first < 0x80 || first >= 0xe0)
        return 1;
    if (first < 0x90)
        return map(values, first & 0x0f);
    if (first < 0xa0)
        return sequence(values, first & 0x0f);
    if (first < 0xc0)
        return content(values, first & 0x1f, TEXT);
    return other(values, first);
}

/* Leaves what has ended. */
static void leave(struct values *values)
{
    while (values->depth && !values->levels[values->depth - 1].open)
        values->depth--;
}

uint64_t lt_unpacked_memory(const uint8_t *data, uint64_t size, uint64_t most)
{
    struct values values = {.data = data, .size = size};

    do {
        struct level *level = values.depth ? &values.levels[values.depth - 1] : NULL;
        int is_text_key = level && level->is_struct && level->open % 2 == 0 && is_text(&values);
        uint64_t before = values.bytes;

        if (level)
            level->open--;
        if (!has(&values, 1) || !value(&values))
            return UINT64_MAX;
        if (is_text_key)
            values.bytes = before;
        leave(&values);
    } while (values.depth && values.bytes <= most);
    return values.bytes;
}
