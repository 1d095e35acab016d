/* The arena of the shared file. It hands out each place once and for all. What it hands out is zero,
 * aligned to a cache line, and its pages are reserved before anybody touches them. */
#ifndef LOCKTOP_ARENA_H
#define LOCKTOP_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

enum {
    ARENA_STEP = 256 << 10,         /* the arena reserves so many bytes of pages at a time */
    ARENA_FIRST_BACKED = 256 << 10, /* reserved at the start */
    ARENA_LAST_ROOM = 32 << 10      /* set aside for what comes of waits */
};

/* Begins an arena in a new file, which may grow to `limit` bytes. */
void arena_init(struct lt_header *header, uint64_t limit);

/* Returns a file offset, 0 if there is no room. */
uint64_t shm_alloc(uint64_t size);

/* The same for what comes of a wait. If there is no room, the arena takes from the last room, which
 * it set aside at the start: a lock that is waited for finds a place where uncontended locks took all
 * the rest. */
uint64_t shm_alloc_last(uint64_t size);

/* A place for what comes and goes. It is fit for use only after shm_reserve(), which returns false if
 * there is no room, and then leaves the room that there is to others. Zero the first time. */
uint64_t shm_alloc_reusable(uint64_t size);
bool shm_reserve(uint64_t offset, uint64_t size);

/* Whole pages, none of them reserved: each part is reserved before it is touched. Others may already
 * use pages that the part shares; those stay reserved where there is no room for all. */
uint64_t shm_alloc_sparse(uint64_t size);
bool shm_reserve_part(uint64_t offset, uint64_t size);

/* Gives whole pages back to the system. The place in the file keeps its owner. Where the file system
 * cannot do that nothing happens. */
void shm_give_back(uint64_t offset, uint64_t size);

/* For a program that is about to confine itself: reserves some room more, and then makes no system
 * call again, so that what is reserved is all there is. False if nothing of that was done. */
bool shm_seal(void);
void shm_unseal(void);

#pragma GCC visibility pop

#endif
