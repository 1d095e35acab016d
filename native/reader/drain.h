/* Copies the rings of all threads of a file again and again. cffi reads this file as reader.h. */
#ifndef LOCKTOP_DRAIN_H
#define LOCKTOP_DRAIN_H

#include <stdint.h>

struct lt_mapping;

/* How far a block of a thread is drained. Zeros at first. */
struct lt_drained_block {
    uint64_t next;      /* the first record that is new */
    uint64_t lost_from; /* the records that were lost last: up to `lost_to` */
    uint64_t lost_to;
    uint64_t long_noted;  /* lt_thread.long_waits_noted when all entries were known */
    uint64_t long_number; /* the largest lt_long_wait.number so far */
};

/* The caller sets the first part before each call. */
struct lt_drain {
    const struct lt_mapping *file;
    uint32_t threads;               /* blocks of threads; those of ended threads too */
    const uint64_t *blocks;         /* offsets of the blocks in the file */
    struct lt_drained_block *state; /* of each block */
    uint64_t threads_at;            /* offset of the number of blocks in the file */
    uint64_t deadline_ns;           /* CLOCK_MONOTONIC; lt_hurry_drain() sets it to 0 */
    uint64_t longest_ns;            /* the longest pause between two rounds */
    uint8_t *records;               /* room for `capacity` records */
    uint8_t *marks;                 /* room for as many marks of the user */
    uint32_t capacity;
    uint32_t enough; /* records after which the call returns */

    uint32_t count;    /* out: sound records that are no marks */
    uint32_t marked;   /* out: sound marks */
    uint32_t damaged;  /* out: other records */
    uint64_t lost;     /* out: overwritten before this call could copy them */
    uint64_t dropped;  /* out: waits of a second or more that are lost, of all times */
    uint64_t pause_ns; /* between two rounds; the rounds adapt it */
    uint64_t due_ns;   /* CLOCK_MONOTONIC; the next round, unless the deadline comes first */
    uint32_t has_more; /* out: 1 if there was no room for all, or there are new threads */
    uint32_t hurries;  /* calls of lt_hurry_drain(); a futex */
};

enum lt_drain_result {
    LT_DRAIN_DONE = 0,    /* no round is due before the deadline, or `count` is enough, or there is
                             more */
    LT_DRAIN_DAMAGED = -1 /* a ring lies outside of the file */
};

/* Copies new records in rounds, until no further one is due before the deadline. There is at least
 * one. Rounds come the more often, the fuller the fullest ring was. The records are complete unless
 * they were overwritten: none is left out. A record that was overwritten is copied from the
 * thread's long waits, if it is there. */
int lt_drain_rings(struct lt_drain *drain);

/* Lets a running call of lt_drain_rings() make its last round now. Any thread may call this. */
void lt_hurry_drain(struct lt_drain *drain);

#endif
