/* The stacks of signal handlers, and handlers that never return. */
#include "stack/handler_stack.h"

#include "base/sys.h"
#include "base/tls.h"
#include "shm/segment.h"

stack_t handler_stack(void)
{
    stack_t stack = {0};
    if (shm_is_sealed() || sys_call3(SYS_sigaltstack, 0, (long)&stack, 0) ||
        !(stack.ss_flags & SS_ONSTACK))
        stack.ss_size = 0;
    return stack;
}

/* Frames of handlers that interrupt the work, and of functions that the work calls, lie below its
 * frame. A handler with a stack of its own lies anywhere. */
bool work_was_left(const uintptr_t *frame)
{
    if ((uintptr_t)frame < lt_own.busy_frame || shm_is_sealed() || handler_stack().ss_size)
        return false;
    lt_own.busy = 0;
    return true;
}
