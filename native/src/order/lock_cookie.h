/* Marks by which a lock is known again: a word of ours in a spare one of its memory. A constructor writes
 * over it, and calls nothing of which the library would hear; so does whatever else the memory was
 * used for. Only with LOCKTOP_ORDER=mark: nothing else here writes to the program's memory.
 *
 * Only the memory of a lock that is just being taken is looked at: then it is there. That of one which
 * is held may have been unmapped. So each is looked at whenever it is taken, and no mutex is taken by
 * a shorter way (thread.c). */
#ifndef LOCKTOP_MARK_H
#define LOCKTOP_MARK_H

#include "base/compiler.h"
#include "base/settings.h"
#include "locktop/abi.h"

/* Gives the lock a mark, if it has none, and a new life, if it had one; lt_lock.marked is 0 where it can
 * have none. */
void cookie_check(struct lt_lock *lock);

NOINLINE void cookie_check_taken(struct lt_thread *t, uint64_t key, uint32_t type);

/* The thread is about to take the lock, or has just taken it. */
static inline void cookie_taken(struct lt_thread *t, uint64_t key, uint32_t type)
{
    if (UNLIKELY(lt_settings.order == ORDER_COOKIES))
        cookie_check_taken(t, key, type);
}

#endif
