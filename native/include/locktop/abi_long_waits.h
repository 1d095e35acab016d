/* The long waits of a thread in the shared memory. A part of abi.h: its rules hold here, too. */
#ifndef LOCKTOP_ABI_LONG_WAITS_H
#define LOCKTOP_ABI_LONG_WAITS_H

#include <stdint.h>

enum {
    LT_LONG_WAITS = 16,          /* entries of a thread */
    LT_LONG_WAITS_IN_SECOND = 10 /* a wait is long from this part of a second on */
};

/* A long wait, which the ring has too until the thread overwrites it. The thread stores `number` 0,
 * then the other fields, then `number` with release. A reader copies an entry twice. If both copies
 * have the same `number` then the first copy is whole. */
struct lt_long_wait {
    uint64_t number;     /* of the record in the ring, + 1; 0: no entry */
    uint32_t lock;       /* id */
    uint32_t is_notable; /* 1: the wait took a second or more */
    uint8_t record[64];  /* LT_RECORD_SIZE: the same bytes as in the ring */
};

#endif
