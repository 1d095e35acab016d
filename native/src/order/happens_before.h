/* Happens-before: which thread created and joined another, so what happened before and after. */
#ifndef LOCKTOP_HAPPENS_BEFORE_H
#define LOCKTOP_HAPPENS_BEFORE_H

#include <pthread.h>

#include "locktop/abi.h"

/* Makes the table. */
void happens_before_init(void);

/* The calling thread begins its first segment. */
void happens_before_begin(struct lt_thread *t);

/* Renews the seed of the thread's known lock orders (lock_order.h): it knows none of a new segment
 * or level. */
void happens_before_renew_seed(struct lt_thread *t);

/* Thread `t` is about to create the thread whose block is `created`. */
void happens_before_creates(struct lt_thread *t, struct lt_thread *created);

/* Makes the thread's life entry, for the thread is of interest. */
void happens_before_keep(struct lt_thread *t);

/* The life of a thread that nobody has joined, or NULL. To be called before the join: afterwards
 * the pthread_t may be another thread's. */
struct lt_life *happens_before_find(pthread_t thread);

/* The calling thread has joined `thread`; `life` is what happens_before_find() returned before. */
void happens_before_joins(pthread_t thread, struct lt_life *life);

#endif
