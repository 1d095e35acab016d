/* Semaphores that a forked child inherits from its parent. Nobody owns a semaphore. Its use in the
 * parent shows whether the program uses it as a lock. Then no thread of the child posts a semaphore
 * that it had not got. */
#ifndef LOCKTOP_INHERITED_SEMAPHORES_H
#define LOCKTOP_INHERITED_SEMAPHORES_H

#include <stdint.h>

#include "locktop/abi.h"

/* This process is a forked child, and is about to detach from the file of its parent. */
void semaphores_inherit(void);

/* The thread begins to wait for a semaphore without a time limit. Notes in lt_lock.parent_posts
 * what the parent's file proves of the semaphore. */
void inherited_semaphore_check(struct lt_thread *t, uint64_t key);

#endif
