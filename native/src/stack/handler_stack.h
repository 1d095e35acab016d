/* The stacks of signal handlers, and handlers that never return. */
#ifndef LOCKTOP_HANDLER_STACK_H
#define LOCKTOP_HANDLER_STACK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* The stack of a signal handler (sigaltstack(2)), empty unless the thread is on it now. */
stack_t handler_stack(void);

/* Whether a busy thread has left the library's work, by longjmp() out of a signal handler or by a
 * cancellation. If so, the thread is busy no more. `frame`: FRAME() of the hook that finds the
 * thread busy. */
bool work_was_left(const uintptr_t *frame);

#pragma GCC visibility pop

#endif
