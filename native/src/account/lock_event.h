/* An event: what a record of the ring says about a lock. */
#ifndef LOCKTOP_LOCK_EVENT_H
#define LOCKTOP_LOCK_EVENT_H

#include <stdint.h>

/* A contended acquisition or a wait, kept until the library may write its record. */
struct lock_event {
    uint32_t type; /* enum lt_record */
    uint32_t kind;
    uint32_t lock;
    uint32_t stack;
    uint32_t holder;
    uint64_t start, wait, hold;
    uint64_t site;
};

#endif
