/* Reads the fields of a record from a thread's ring, byte by byte. */
#ifndef LOCKTOP_TEST_RECORDS_H
#define LOCKTOP_TEST_RECORDS_H

#include <stdint.h>

#include "base/tls.h"
#include "locktop/abi.h"
#include "shm/segment.h"

struct record {
    uint32_t type, kind, tid, lock, stack, holder;
    uint64_t start, wait, hold, site;
};

static inline uint64_t big_endian(const uint8_t *from, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | from[i];
    return value;
}

/* The record that the thread wrote last. */
static inline struct record last_record(const struct lt_thread *t)
{
    const uint8_t *ring = shm_ptr(t->ring);
    const uint8_t *slot = ring + ((t->ring_head - 1) & (t->ring_capacity - 1)) * LT_RECORD_SIZE;
    return (struct record){.type = slot[1],
                           .kind = slot[2],
                           .tid = (uint32_t)big_endian(slot + 4, 4),
                           .lock = (uint32_t)big_endian(slot + 9, 4),
                           .stack = (uint32_t)big_endian(slot + 14, 4),
                           .holder = (uint32_t)big_endian(slot + 19, 4),
                           .start = big_endian(slot + 24, 8),
                           .wait = big_endian(slot + 33, 8),
                           .hold = big_endian(slot + 42, 8),
                           .site = big_endian(slot + 51, 8)};
}

#endif
