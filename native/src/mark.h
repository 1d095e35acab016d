/* Marks by which a lock is known again: a word of ours in a spare one of its memory. A constructor writes
 * over it, and calls nothing of which the library would hear; so does whatever else the memory was
 * used for. Only with LOCKTOP_ORDER=mark: nothing else here writes to the program's memory. */
#ifndef LOCKTOP_MARK_H
#define LOCKTOP_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "locktop/abi.h"

/* The word of a lock, as it is; 0 where there is none to spare. The caller is about to take the lock or
 * has it, so that its memory is there. */
uint64_t mark_at(uint64_t key);

/* Gives the lock a mark, if it has none, and a new life, if it had one. False: it can have none. */
bool mark_lock(struct lt_lock *lock);

#endif
