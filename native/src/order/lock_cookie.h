/* Lock cookies: words that the library writes into spare words of locks, to know the locks again. A
 * constructor writes over the cookie without a call that a hook would see. So does any other use of
 * the memory. Only with LOCKTOP_ORDER=mark: nothing else in the library writes to the program's
 * memory.
 *
 * The library checks the cookie only of a lock that a thread is just taking: then the memory
 * exists. The memory of a held lock may have been unmapped. So the cookie is checked whenever a
 * lock is taken, and no mutex is taken by the fast path (runtime/thread.c). */
#ifndef LOCKTOP_LOCK_COOKIE_H
#define LOCKTOP_LOCK_COOKIE_H

#include "base/compiler.h"
#include "base/settings.h"
#include "locktop/abi.h"

/* Gives the lock a cookie if it has none. A lock that had one begins a new life. lt_lock.cookies is
 * 0 if the lock can have no cookie. */
void cookie_check(struct lt_lock *lock);

NOINLINE void cookie_check_taken(struct lt_thread *t, uint64_t key, uint32_t type);

/* The thread is about to take the lock, or has just taken it. */
static inline void cookie_taken(struct lt_thread *t, uint64_t key, uint32_t type)
{
    if (UNLIKELY(lt_settings.order == ORDER_COOKIES))
        cookie_check_taken(t, key, type);
}

#endif
