/* Call stacks: taken on the contended path, kept once each, known again at the price of a
 * comparison. */
#ifndef LOCKTOP_STACK_H
#define LOCKTOP_STACK_H

#include "wait.h"

/* Makes the table; 0 on success, -1 if there is no room. */
int stacks_init(void);

/* The id of the stack that called a hook, 0 if there is no room for it. */
uint32_t stack_capture(struct lt_thread *t, const uintptr_t *frame);

/* The id of these return addresses, entered if they are new; 0 if there is no room. */
uint32_t stack_id(const uint64_t *frames, uint32_t depth);

#endif
