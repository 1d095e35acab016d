/* Tests of lock cookies. The library knows a lock again by its cookie, but not if it was made anew
 * or copied. No cookie is written where the library may not write. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "account/hold.h"
#include "base/lock_key.h"
#include "base/settings.h"
#include "base/tls.h"
#include "check.h"
#include "order/lock_cookie.h"
#include "order/lock_order.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "tables/lock_table.h"

static struct lt_lock *lock_of(enum lt_kind kind, const void *address)
{
    return array_at(&lt_shm->locks, lock_id(lock_key(kind, address), 0));
}

static uint64_t word_of_mutex(const pthread_mutex_t *m)
{
    return (uint64_t)(uintptr_t)m->__data.__list.__next;
}

static void known_again(void)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    struct lt_lock *locks[] = {lock_of(LT_KIND_MUTEX, &m), lock_of(LT_KIND_RWLOCK, &l)};
    for (size_t i = 0; i < 2; i++) {
        for (int again = 0; again < 3; again++)
            cookie_check(locks[i]);
        CHECK_EQUAL(locks[i]->cookies, 1);
    }
    CHECK(word_of_mutex(&m) && l.__data.__pad2);
    /* The mutexes work as before. */
    CHECK_EQUAL(pthread_mutex_lock(&m) | pthread_mutex_unlock(&m) | pthread_mutex_destroy(&m), 0);
    CHECK_EQUAL(pthread_rwlock_wrlock(&l) | pthread_rwlock_unlock(&l), 0);
    CHECK_EQUAL(pthread_rwlock_rdlock(&l) | pthread_rwlock_unlock(&l), 0);
    CHECK_EQUAL(pthread_rwlock_destroy(&l), 0);
}

static void made_anew(void)
{
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    struct lt_lock *lock = lock_of(LT_KIND_MUTEX, &m);
    uint16_t lives = *order_life_of(lock->key);
    for (uint16_t life = 1; life < 4; life++) {
        m = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        cookie_check(lock);
        cookie_check(lock);
        CHECK_EQUAL(lock->cookies, life);
        CHECK_EQUAL(*order_life_of(lock->key), lives + life);
    }
    lock->cookies = UINT16_MAX;
    m = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    cookie_check(lock);
    CHECK_EQUAL(lock->cookies, 1); /* 0 means no cookie */
}

/* As realloc() copies, or as a fork does whose child counts anew. */
static void copied(void)
{
    pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
    struct lt_lock *from = lock_of(LT_KIND_MUTEX, &m[0]), *to = lock_of(LT_KIND_MUTEX, &m[1]);
    cookie_check(from);
    cookie_check(to);
    memcpy(&m[1], &m[0], sizeof *m);
    cookie_check(to);
    CHECK_EQUAL(to->cookies, 2);
}

static pthread_mutex_t made(int robust, int shared)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t m;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutexattr_setpshared(&attributes, shared);
    pthread_mutex_init(&m, &attributes);
    return m;
}

static void not_ours_to_write_to(void)
{
    pthread_mutex_t m[] = {made(PTHREAD_MUTEX_ROBUST, PTHREAD_PROCESS_PRIVATE),
                           made(PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_SHARED),
                           PTHREAD_MUTEX_INITIALIZER};
    m[2].__data.__list.__next = (void *)0x1234; /* the program wants to find its own value there */
    for (size_t i = 0; i < 3; i++) {
        pthread_mutex_t before = m[i];
        struct lt_lock *lock = lock_of(LT_KIND_MUTEX, &m[i]);
        lock->cookies = 7; /* as for a lock that lay there before */
        cookie_check(lock);
        CHECK_EQUAL(lock->cookies, 0);
        CHECK(memcmp(&before, &m[i], sizeof before) == 0);
    }
    pthread_rwlockattr_t attributes;
    pthread_rwlock_t l;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&l, &attributes);
    cookie_check(lock_of(LT_KIND_RWLOCK, &l));
    CHECK_EQUAL(l.__data.__pad2, 0);
    pthread_spinlock_t spin = 0;
    cookie_check(lock_of(LT_KIND_SPIN, (const void *)&spin));
    CHECK_EQUAL(spin, 0);
}

static NOINLINE void take(struct lt_thread *t, pthread_mutex_t *m)
{
    const uintptr_t *frame = FRAME();
    uint64_t key = lock_key(LT_KIND_MUTEX, m);
    cookie_taken(t, key, 0);
    order_before(t, key, 0, false, frame);
    acquired(t, key, 0, return_address(frame), 0);
}

static const struct lt_order *both(struct lt_thread *t, pthread_mutex_t *m)
{
    take(t, &m[0]);
    take(t, &m[1]);
    t->held_top = 0;
    return array_at(&lt_shm->orders, lt_shm->orders.count - 1);
}

static void orders_say_so(struct lt_thread *t)
{
    enum { BOTH = LT_ORDER_KNOWN | LT_ORDER_KNOWN << LT_ORDER_HELD };
    pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
    both(t, m);
    CHECK_EQUAL(word_of_mutex(m), 0); /* nothing is written without LOCKTOP_ORDER=mark */
    lt_settings.order = ORDER_COOKIES;
    struct lt_order first = *both(t, m);
    uint32_t count = lt_shm->orders.count;
    CHECK_EQUAL(first.flags & BOTH, BOTH);
    both(t, m);
    CHECK_EQUAL(lt_shm->orders.count, count);
    m[1] = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    const struct lt_order *second = both(t, m);
    CHECK_EQUAL(lt_shm->orders.count, count + 1);
    CHECK_EQUAL(second->held_life[0], first.held_life[0]);
    CHECK(second->life != first.life);
    CHECK_EQUAL(second->flags & BOTH, BOTH);
    lt_settings.order = ORDER_NOTED;
}

int main(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    known_again();
    made_anew();
    copied();
    not_ours_to_write_to();
    orders_say_so(t);
    return 0;
}
