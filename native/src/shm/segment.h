/* The shared file: made, mapped, grown. A place in it is handed out once and for all; what is handed
 * out is zero, aligned to a cache line, and its pages are reserved before anybody touches them. */
#ifndef LOCKTOP_SHM_H
#define LOCKTOP_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* for a direct access: declarations need it said */

/* The file grows in segments, each twice as long as the one before, mapped when first needed:
 * segment k covers file offsets [(2^k - 1) MiB, (2^(k+1) - 1) MiB). */
enum { SHM_SEGMENTS = 16, SHM_FIRST_SHIFT = 20, SHM_PATH_MAX = 512 };

/* Pages are reserved so many bytes at a time. */
enum { SHM_STEP = 256 << 10 };

/* NULL while nothing is watched. */
extern struct lt_header *lt_shm;

/* The mapping: moved as a whole to the side when a forked child makes its own. */
struct shm_map {
    uint8_t *segment[SHM_SEGMENTS];
};
extern struct shm_map shm_map;

/* Makes and maps the file of this process in `directory`. On failure returns false, leaves no
 * file behind and puts the reason, for a person, into `reason`. */
bool shm_create(const char *directory, char *reason, size_t reason_size);

/* Maps a part of the file at `address` too, in place of what is there; -errno on failure. */
long shm_map_at(void *address, uint64_t offset, uint64_t length);

/* Removes the name; the mapping stays. */
void shm_remove(void);

/* Forgets a mapping, or unmaps it. */
struct shm_map shm_detach(void);
void shm_unmap(const struct shm_map *map);

/* Leaves the reason where a tool finds it without rights: as the name of a mapping. */
void shm_leave_reason(const char *reason);

/* True in a child that no fork handler has seen (clone by its bare system call): the file is the
 * parent's, and nothing that is mapped or pointed to from now on exists there. */
bool shm_is_strangers(void);

/* For a program that is about to confine itself: reserves some room more, and then makes no system
 * call again, so that what is reserved is all there is. False if nothing of that was done. */
bool shm_seal(void);
void shm_unseal(void);
bool shm_is_sealed(void);

/* Returns a file offset, 0 if there is no room. */
uint64_t shm_alloc(uint64_t size);

/* The same for what comes of a wait: if there is no room, a piece of some that is set aside at the
 * start, so that what is waited for finds a place where uncontended locks took all the rest. */
uint64_t shm_alloc_last(uint64_t size);

/* A place for what comes and goes: fit for use only after shm_reserve(), which returns false if there
 * is no room, and then leaves what room there is to others. Zero the first time. */
uint64_t shm_place(uint64_t size);
bool shm_reserve(uint64_t offset, uint64_t size);

/* Whole pages, none of them reserved: each part is, before it is touched. Others may already use
 * pages that it shares, which stay reserved where there is no room for all. */
uint64_t shm_alloc_sparse(uint64_t size);
bool shm_reserve_part(uint64_t offset, uint64_t size);

/* Gives whole pages back to the system; the place in the file stays whose it was. Where the file
 * system cannot do that nothing happens. */
void shm_give_back(uint64_t offset, uint64_t size);

static inline unsigned shm_segment_of(uint64_t offset)
{
    return 63u - (unsigned)__builtin_clzll((offset >> SHM_FIRST_SHIFT) + 1);
}

static inline uint64_t shm_segment_start(unsigned segment)
{
    return (((uint64_t)1 << segment) - 1) << SHM_FIRST_SHIFT;
}

static inline void *shm_ptr(uint64_t offset)
{
    unsigned segment = shm_segment_of(offset);
    return shm_map.segment[segment] + (offset - shm_segment_start(segment));
}

#pragma GCC visibility pop

#endif
