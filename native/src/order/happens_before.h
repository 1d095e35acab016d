/* Which thread created and which one joined another: what happened before and what after it. */
#ifndef LOCKTOP_LINEAGE_H
#define LOCKTOP_LINEAGE_H

#include <pthread.h>

#include "locktop/abi.h"

/* Makes the table. */
void happens_before_init(void);

/* The calling thread begins. */
void happens_before_begin(struct lt_thread *t);

/* Whatever orders of locks it knows (order.h): it does not know those of a new segment, or level. */
void happens_before_renew_seed(struct lt_thread *t);

/* Thread t is about to create one whose block will be `created`. */
void happens_before_creates(struct lt_thread *t, struct lt_thread *created);

/* The thread is of interest, so what is known of its beginning and its end is to be kept. */
void happens_before_keep(struct lt_thread *t);

/* What is kept of a thread that nobody has joined, or NULL. To be asked before it is joined: its
 * pthread_t may be another thread's afterwards. */
struct lt_life *happens_before_find(pthread_t thread);

/* The calling thread has joined it; `known` is what happens_before_find() said before. */
void happens_before_joins(pthread_t thread, struct lt_life *known);

#endif
