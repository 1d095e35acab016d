/* The mapping of the shared file into this process, and what is true of the file as a whole. */
#ifndef LOCKTOP_SEGMENT_H
#define LOCKTOP_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"
#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* The file grows in segments, each twice as long as the one before, mapped when first needed.
 * Segment k covers file offsets [(2^k - 1) MiB, (2^(k+1) - 1) MiB). */
enum { SHM_SEGMENTS = 16, SHM_FIRST_SHIFT = 20 };

/* NULL while nothing is watched. */
extern struct lt_header *lt_shm;

/* The mapping. A forked child sets the whole of it aside when the child makes its own. */
struct shm_map {
    uint8_t *segment[SHM_SEGMENTS];
};
extern struct shm_map shm_map;

/* The path of the file; empty before there is one. */
extern char shm_path[SHM_PATH_MAX];

/* Maps a part of the file at `address` too, in place of what is there; -errno on failure. */
long shm_map_at(void *address, uint64_t offset, uint64_t length);

/* Forgets a mapping, or unmaps it. */
struct shm_map shm_detach(void);
void shm_unmap(const struct shm_map *map);

/* Maps a segment unless it is mapped; false if that fails. */
bool shm_segment_map(unsigned segment);

/* Makes the system provide the pages between two offsets of mapped segments; false if there is no
 * room. */
bool shm_pages_reserve(uint64_t from, uint64_t to);

/* `is_own` is 1 once this process has its file, and 0 in a child, however the child was made. */
extern union generation_page {
    uint32_t is_own;
    uint8_t room[LT_PAGE];
} lt_generation;

/* From now on a child of this process is known from the process itself. */
void shm_begin_generation(void);

/* True in a child that no fork handler has seen (clone by its bare system call). The file is the
 * parent's then, and later mappings and pointers exist only in the parent. */
bool shm_is_of_parent(void);

/* Of a program that confined itself: the library makes no system call for memory then. */
void shm_set_sealed(bool is_sealed);
bool shm_is_sealed(void);

static inline uint64_t shm_segment_size(unsigned segment)
{
    return (uint64_t)1 << (SHM_FIRST_SHIFT + segment);
}

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
