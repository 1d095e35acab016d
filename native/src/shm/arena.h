/* The arena of the shared file. The arena hands out each range once and for all. A range is zero
 * and aligned to a cache line, and its pages are reserved before any thread touches them. */
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

/* Returns the file offset of a new range, 0 if there is no room. */
uint64_t shm_alloc(uint64_t size);

/* The same for what works in a smaller size, too. The last quarter of the limit stays free for
 * tables and later threads. A range takes at most a quarter of the rest. There is no room after the
 * file system refused pages. */
uint64_t shm_alloc_spare(uint64_t size);

/* The same for the data of a wait. If there is no room, the arena takes from the last room, which
 * it set aside at the start. So a lock that is waited for finds room even if uncontended locks took
 * all the rest. */
uint64_t shm_alloc_last(uint64_t size);

/* A range that its owner uses at times only. Its pages are fit for use after shm_reserve(), which
 * returns false if there is no room. The range is zero the first time. */
uint64_t shm_alloc_reusable(uint64_t size);
bool shm_reserve(uint64_t offset, uint64_t size);

/* A range of whole pages, none of them reserved. The owner reserves each part before a thread
 * touches it. Other users may already use pages that the part shares. Those pages stay reserved if
 * there is no room for all. */
uint64_t shm_alloc_sparse(uint64_t size);
bool shm_reserve_part(uint64_t offset, uint64_t size);

/* Gives whole pages back to the system; the range keeps its owner. Nothing happens if the file
 * system cannot give pages back. */
void shm_give_back(uint64_t offset, uint64_t size);

/* For a program that is about to confine itself. Reserves some more pages. After that the arena
 * makes no system call, so only what is reserved can be handed out. False if nothing of that was
 * done. */
bool shm_seal(void);
void shm_unseal(void);

#pragma GCC visibility pop

#endif
