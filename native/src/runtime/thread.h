/* Thread blocks: how a thread gets one, and how a dead thread leaves it. */
#ifndef LOCKTOP_THREAD_H
#define LOCKTOP_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* Takes a block for a thread about to be created; NULL if there is none. */
struct lt_thread *thread_reserve(void);
void thread_release(struct lt_thread *t);

/* Makes the block the calling thread's own. */
void thread_adopt(struct lt_thread *t);

/* Registers a thread whose creation no hook saw: the first thread, or one that is older than the
 * watch. NULL if there is no block. */
struct lt_thread *thread_register(void);

/* The calling thread has no block any more: what the layers keep for the thread begins anew. */
void thread_leave(void);

/* The calling thread is not watched from now on. */
void thread_unwatch(void);

/* Forgets all threads, in a forked child. */
void threads_reset(void);

/* Makes the table of threads; 0 on success, -1 if there is no room. `read_tid` returns the calling
 * thread's tid without a system call, and hooks may then use mutex_take(); NULL: neither. */
int threads_init(uint32_t (*read_tid)(void));

#pragma GCC visibility pop

#endif
