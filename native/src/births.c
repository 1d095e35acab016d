#include "births.h"

#include <stdbool.h>
#include <stddef.h>

#include "locks.h"

enum { BITS = 16 };

/* Not shared memory, which would have to be reserved as a whole: a page costs nothing before a lock falls
 * into it. A lock falls into one place only, and the one that was there is forgotten. */
static struct birth {
    uint64_t key; /* 0: none; BUSY: being written */
    const void *site;
    uint32_t type;
} births[1u << BITS];

#define BUSY UINT64_MAX

static struct birth *place_of(uint64_t key)
{
    return &births[lock_hash(key) >> (64 - BITS)];
}

/* Of two writers the second one gives up: one may be a signal handler inside the other. */
void births_note(uint64_t key, uint32_t type, const void *site)
{
    struct birth *birth = place_of(key);
    if (__atomic_exchange_n(&birth->key, BUSY, __ATOMIC_ACQUIRE) == BUSY)
        return;
    __atomic_store_n(&birth->site, site, __ATOMIC_RELAXED);
    __atomic_store_n(&birth->type, type, __ATOMIC_RELAXED);
    __atomic_store_n(&birth->key, key, __ATOMIC_RELEASE);
}

void births_forget(uint64_t key)
{
    __atomic_compare_exchange_n(&place_of(key)->key, &key, 0, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

/* Key 0 if it is not there, or is just being written over. */
static struct birth copy_of(uint64_t key)
{
    const struct birth *birth = place_of(key);
    struct birth copy = {.key = __atomic_load_n(&birth->key, __ATOMIC_ACQUIRE)};
    copy.site = __atomic_load_n(&birth->site, __ATOMIC_RELAXED);
    copy.type = __atomic_load_n(&birth->type, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    bool same = copy.key == key && __atomic_load_n(&birth->key, __ATOMIC_RELAXED) == key;
    return same ? copy : (struct birth){0};
}

const void *births_site(uint64_t key)
{
    return copy_of(key).site;
}

uint32_t births_type(uint64_t key)
{
    return copy_of(key).type;
}
