/* Writes and checks lock cookies. */
#include "order/lock_cookie.h"

#include <pthread.h>
#include <stddef.h>

#include "base/lock_key.h"
#include "base/modes.h"
#include "order/lock_order.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/thread_table.h"

/* The upper half of a cookie. Any other content of the word is the program's, and stays. */
#define COOKIE_TAG 0x6c6f636bu

/* The spare word of a mutex, NULL if there is none. glibc chains robust mutexes through __list
 * (nptl/descr.h), and does not use __list in other mutexes. The spare word of a rwlock is __pad2.
 * Of a lock that several processes share, each process would write its own cookie. */
static uint64_t *mutex_word(pthread_mutex_t *m)
{
    enum { ROBUST = 16, PSHARED = 128 }; /* bits of __kind: nptl/pthreadP.h */
    int kind = __atomic_load_n(&m->__data.__kind, __ATOMIC_RELAXED);
    return kind & (ROBUST | PSHARED) ? NULL : (uint64_t *)(void *)&m->__data.__list.__next;
}

static uint64_t *rwlock_word(pthread_rwlock_t *l)
{
    _Static_assert(sizeof l->__data.__pad2 == sizeof(uint64_t), "not as the layout is known here");
    return l->__data.__shared ? NULL : (uint64_t *)&l->__data.__pad2;
}

static uint64_t *word_of(uint64_t key)
{
    void *address = (void *)(uintptr_t)(key & ((UINT64_C(1) << LT_KIND_SHIFT) - 1));
    switch (key >> LT_KIND_SHIFT) {
    case LT_KIND_MUTEX: return mutex_word(address);
    case LT_KIND_RWLOCK: return rwlock_word(address);
    default: return NULL;
    }
}

/* The cookie contains the address: a copy of a lock is another lock. */
static uint64_t cookie_of(uint64_t key, uint32_t generation, uint16_t number)
{
    uint32_t life = generation << 16 ^ number;
    return (uint64_t)COOKIE_TAG << 32 | (uint32_t)((lock_hash(key) >> 32) ^ life);
}

static void set(struct lt_lock *lock, uint16_t number)
{
    __atomic_store_n(&lock->cookies, number, __ATOMIC_RELEASE);
    order_life_changed(lock->key);
}

static void cookie_removed(struct lt_lock *lock)
{
    if (__atomic_load_n(&lock->cookies, __ATOMIC_RELAXED))
        set(lock, 0);
}

void cookie_check(struct lt_lock *lock)
{
    uint64_t *word = word_of(lock->key);
    if (!word) {
        cookie_removed(lock);
        return;
    }
    uint32_t generation = __atomic_load_n(&lock->generation, __ATOMIC_RELAXED);
    uint16_t number = __atomic_load_n(&lock->cookies, __ATOMIC_ACQUIRE);
    uint64_t cookie = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (number && cookie == cookie_of(lock->key, generation, number))
        return;
    if (cookie && cookie >> 32 != COOKIE_TAG) {
        cookie_removed(lock);
        return;
    }
    uint16_t next = number == UINT16_MAX ? 1 : (uint16_t)(number + 1);
    /* Of two threads that come at once, one writes the cookie; the other finds it the next time. */
    if (__atomic_compare_exchange_n(word, &cookie, cookie_of(lock->key, generation, next), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        set(lock, next);
}

void cookie_check_taken(struct lt_thread *t, uint64_t key, uint32_t type)
{
    if ((t->mode & LEVEL_MASK) < LT_LEVEL_CONTENDED || shm_is_of_parent())
        return;
    struct lt_lock *lock = array_at(&lt_shm->locks, counters_of(t, key, type)->lock);
    if (lock && lock->key == key)
        cookie_check(lock);
}
