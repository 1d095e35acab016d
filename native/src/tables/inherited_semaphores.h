/* Semaphores that a forked child inherits from its parent. Nobody owns a semaphore. Its use in the
 * parent shows whether the program uses it as a lock. Then no thread of the child posts a semaphore
 * that it had not got. */
#ifndef LOCKTOP_INHERITED_SEMAPHORES_H
#define LOCKTOP_INHERITED_SEMAPHORES_H

#include <stdint.h>

#include "locktop/abi.h"
#include "shm/segment.h"

/* This process is a forked child. `parent`: the mapping of its parent's file, which stays. */
void semaphores_inherit(struct shm_map parent);

/* The thread begins to wait for a semaphore without a time limit. Notes in lt_lock.parent_posts
 * what the parent's file proves of the semaphore. */
void inherited_semaphore_check(struct lt_thread *t, uint64_t key);

#endif
