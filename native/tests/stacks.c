/* The stack cache gives what a fresh unwinding gives, also where it is easily fooled: the same
 * call site at the same depth of stack, reached through other callers. */
#include <string.h>
#include <unwind.h>

#include "check.h"
#include "shm.h"
#include "stack.h"

#define OPAQUE __attribute__((noinline, noclone))

struct frames {
    uint64_t address[LT_STACK_MAX];
    uint32_t depth;
};

static _Unwind_Reason_Code collect(struct _Unwind_Context *context, void *argument)
{
    struct frames *frames = argument;
    if (frames->depth == LT_STACK_MAX || _Unwind_GetIP(context) == 0)
        return _URC_END_OF_STACK;
    frames->address[frames->depth++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

static uint64_t compared;

/* Stands for a hook: its caller is the first frame of the stack. */
static OPAQUE uint32_t hook(void)
{
    struct lt_thread *t = watched();
    uint32_t mode = thread_busy(t);
    uint32_t id = stack_capture(t, FRAME());
    thread_ready(t, mode);
    struct frames expected = {.depth = 0};
    _Unwind_Backtrace(collect, &expected);
    CHECK(id);
    const struct lt_stack *stack = shm_ptr((uint64_t)id * LT_STACK_UNIT);
    const uint64_t *found = (const uint64_t *)(stack + 1);
    /* the unwinder's first frame is this function itself */
    CHECK_EQUAL(stack->depth, expected.depth - 1);
    for (uint32_t i = 0; i < stack->depth; i++)
        CHECK_EQUAL(found[i], expected.address[i + 1]);
    compared++;
    return id;
}

static OPAQUE uint32_t leaf(volatile int *work)
{
    uint32_t id = hook();
    (*work)++;
    return id;
}

/* Frames of one size, so that leaf() lies at one address whichever of them called. */
#define CALLER(name, next)                                                                         \
    static OPAQUE uint32_t name(volatile int *work)                                                \
    {                                                                                              \
        uint32_t id = next(work);                                                                  \
        (*work)++;                                                                                 \
        return id;                                                                                 \
    }
CALLER(left, leaf)
CALLER(right, leaf)
CALLER(above_left, left)
CALLER(above_right, right)
CALLER(crossed, left)

static OPAQUE uint32_t deep(int depth, volatile int *work)
{
    uint32_t id = depth ? deep(depth - 1, work) : leaf(work);
    (*work)++;
    return id;
}

/* A frame whose size changes from call to call. */
static OPAQUE uint32_t elastic(unsigned size, volatile int *work)
{
    volatile char room[size + 1];
    room[size] = 1;
    uint32_t id = leaf(work);
    *work += room[size];
    return id;
}

int main(void)
{
    volatile int work = 0;
    uint32_t (*volatile callers[])(volatile int *) = {above_left, above_right, crossed, left,
                                                      right};
    enum { CALLERS = sizeof callers / sizeof *callers };
    uint32_t ids[CALLERS];
    for (int round = 0; round < 2000; round++)
        for (int i = 0; i < CALLERS; i++) {
            uint32_t id = callers[i](&work);
            if (round == 0)
                ids[i] = id;
            CHECK_EQUAL(id, ids[i]); /* one stack, one id */
        }
    for (int i = 0; i < CALLERS; i++)
        for (int j = 0; j < i; j++)
            CHECK(ids[i] != ids[j]);
    for (int round = 0; round < 20; round++)
        for (int depth = 0; depth < 100; depth += 7) /* beyond LT_STACK_MAX too: cut, not wrong */
            if (depth < LT_STACK_MAX - 20)
                deep(depth, &work);
    for (unsigned round = 0; round < 2000; round++)
        elastic(round * 37 % 300, &work);
    CHECK(compared > 10000);
    return 0;
}
