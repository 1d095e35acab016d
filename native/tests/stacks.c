/* The stack cache gives what a fresh unwinding gives, also where it is easily fooled: the same
 * call site at the same depth of stack, reached through other callers. And it saves unwindings. */
#include <dlfcn.h>
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

static uint64_t compared, unwound;

static _Unwind_Reason_Code real_backtrace(_Unwind_Trace_Fn step, void *argument)
{
    static __typeof__(_Unwind_Backtrace) *real;
    if (!real)
        real = dlsym(RTLD_NEXT, "_Unwind_Backtrace");
    CHECK(real);
    return real(step, argument);
}

/* In the place of libgcc's. */
_Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn step, void *argument)
{
    unwound++;
    return real_backtrace(step, argument);
}

uint32_t hook(void);
uint32_t with_frame_pointer(uintptr_t value);

/* Stands for a hook: its caller is the first frame of the stack. */
OPAQUE uint32_t hook(void)
{
    struct lt_thread *t = watched();
    uint32_t mode = thread_busy(t);
    uint32_t id = stack_capture(t, FRAME());
    thread_ready(t, mode);
    struct frames expected = {.depth = 0};
    real_backtrace(collect, &expected);
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

/* Compilers use the register of the frame pointer for whatever they like. */
#if defined(__x86_64__)
__asm__(".globl with_frame_pointer\n"
        ".type with_frame_pointer, @function\n"
        "with_frame_pointer:\n"
        "    .cfi_startproc\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    mov %rdi, %rbp\n"
        "    call hook\n"
        "    pop %rbp\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size with_frame_pointer, . - with_frame_pointer\n");
#else
uint32_t with_frame_pointer(uintptr_t value)
{
    return value ? hook() : 0;
}
#endif

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
    CHECK(unwound < 100); /* of 10000: not even where two callers take turns */
    for (int i = 0; i < CALLERS; i++)
        for (int j = 0; j < i; j++)
            CHECK(ids[i] != ids[j]);
    for (int round = 0; round < 20; round++)
        for (int depth = 0; depth < 100; depth += 7) /* beyond LT_STACK_MAX too: cut, not wrong */
            if (depth < LT_STACK_MAX - 20)
                deep(depth, &work);
    for (unsigned round = 0; round < 2000; round++)
        elastic(round * 37 % 300, &work);
    uint64_t before = unwound;
    for (uintptr_t value = 1; value < 2000; value++)
        with_frame_pointer(value);
    CHECK(unwound - before < 10);
    CHECK(compared > 10000);
    return 0;
}
