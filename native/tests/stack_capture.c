/* Tests of the stack cache: it gives what a fresh unwinding gives. The cache also does so for the
 * same call site at the same depth, reached through other callers. And it saves unwindings. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unwind.h>

#include "base/tls.h"
#include "check.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "stack/stack_state.h"

#define OPAQUE __attribute__((noinline, noclone))

struct frames {
    uint64_t address[LT_STACK_MAX + 1]; /* with hook() itself */
    uint32_t depth;
    bool cut;
};

static _Unwind_Reason_Code collect(struct _Unwind_Context *context, void *argument)
{
    struct frames *frames = argument;
    if (_Unwind_GetIP(context) == 0)
        return _URC_END_OF_STACK;
    if (frames->depth == LT_STACK_MAX + 1) {
        frames->cut = true;
        return _URC_END_OF_STACK;
    }
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

/* Takes the place of libgcc's function. */
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
    const uint64_t *frames = (const uint64_t *)(stack + 1);
    /* the unwinder's first frame is this function itself */
    uint32_t depth = stack->depth & ~(uint32_t)LT_STACK_CUT;
    CHECK_EQUAL(depth, expected.depth - 1);
    CHECK_EQUAL(stack->depth != depth, expected.cut);
    for (uint32_t i = 0; i < depth; i++)
        CHECK_EQUAL(frames[i], expected.address[i + 1]);
    compared++;
    return id;
}

#if defined(__x86_64__) /* elsewhere no stack needs the unwinder */
/* The same under a lock of the unwinder that no hook sees: only the caller is known. */
static OPAQUE uint32_t hook_of_registration(void)
{
    struct lt_thread *t = watched();
    uint32_t mode = thread_busy(t);
    stack_registering++;
    uint32_t id = stack_capture(t, FRAME());
    stack_registering--;
    thread_ready(t, mode);
    const struct lt_stack *stack = shm_ptr((uint64_t)id * LT_STACK_UNIT);
    CHECK_EQUAL(stack->depth, 1);
    CHECK_EQUAL(*(const uint64_t *)(stack + 1), (uint64_t)(uintptr_t)__builtin_return_address(0));
    return id;
}
#endif

static OPAQUE uint32_t leaf(volatile int *work)
{
    uint32_t id = hook();
    (*work)++;
    return id;
}

/* Frames of one size: leaf() lies at one address whichever of them called it. */
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

/* A trip through functions chosen at random, of every kind of frame. The trip ends with the hook at
 * one of a few addresses. There the same call was made before, from the same address, by other
 * callers. Their return addresses may still lie in room that a function took and never wrote to. */
struct trip {
    uint32_t random;
    unsigned left; /* functions that are still to be called */
    uintptr_t floor;
    volatile int work;
};
typedef uint32_t step(struct trip *trip);
uint32_t clobber(struct trip *trip, step *next);
static step land, land_without_frame_pointer;

static uint32_t draw(struct trip *trip, uint32_t below)
{
    trip->random = trip->random * 1664525 + 1013904223;
    return (trip->random >> 8) % below;
}

/* Has no frame pointer, unless every function keeps a frame record. */
#if defined(__x86_64__)
#define OMIT __attribute__((optimize("omit-frame-pointer")))
#else
#define OMIT
#endif
static step *next_of(struct trip *trip);

static OPAQUE OMIT uint32_t flat(struct trip *trip)
{
    uint32_t id = next_of(trip)(trip);
    trip->work++;
    return id;
}

static OPAQUE OMIT uint32_t flat_too(struct trip *trip)
{
    uint32_t id = next_of(trip)(trip);
    trip->work += 2;
    return id;
}

/* The register of the frame pointer holds what this function works with. */
static OPAQUE OMIT uint32_t busy(struct trip *trip)
{
    int a = trip->work, b = a ^ 1, c = a ^ 2, d = a ^ 3, e = a ^ 4, f = a ^ 5;
    uint32_t id = next_of(trip)(trip);
    trip->work = a ^ b ^ c ^ d ^ e ^ f;
    return id;
}

static OPAQUE uint32_t with_record(struct trip *trip)
{
    uint32_t id = next_of(trip)(trip);
    trip->work++;
    return id;
}

static OPAQUE OMIT uint32_t growing(struct trip *trip)
{
    volatile char room[16 * draw(trip, 24) + 16];
    room[0] = 1;
    uint32_t id = next_of(trip)(trip);
    trip->work += room[0];
    return id;
}

/* Has a frame that begins at an alignment boundary, wherever its caller's ends. */
static OPAQUE OMIT uint32_t aligned(struct trip *trip)
{
    _Alignas(64) volatile char room[64];
    room[0] = 1;
    uint32_t id = next_of(trip)(trip);
    trip->work += room[0];
    return id;
}

static OPAQUE OMIT uint32_t aligned_growing(struct trip *trip)
{
    _Alignas(128) volatile char fixed[128];
    volatile char room[16 * draw(trip, 24) + 16];
    fixed[0] = room[0] = 1;
    uint32_t id = next_of(trip)(trip);
    trip->work += room[0] + fixed[0];
    return id;
}

static OPAQUE uint32_t clobbering(struct trip *trip)
{
    uint32_t id = clobber(trip, next_of(trip));
    trip->work++;
    return id;
}

static step *next_of(struct trip *trip)
{
    static step *const kinds[] = {flat,    flat_too,        busy,      with_record, growing,
                                  aligned, aligned_growing, clobbering};
    if (!trip->left)
        return draw(trip, 2) ? land : land_without_frame_pointer;
    trip->left--;
    return kinds[draw(trip, sizeof kinds / sizeof *kinds)];
}

static OPAQUE uint32_t arrive(struct trip *trip)
{
    uint32_t id = hook();
    trip->work++;
    return id;
}

/* Takes all the room down to the floor, and does not touch it. */
#define ROOM(trip)                                                                                 \
    __builtin_alloca(((uintptr_t)__builtin_frame_address(0) - (trip)->floor) & ~(uintptr_t)15)

static OPAQUE OMIT uint32_t land(struct trip *trip)
{
    __asm__ volatile("" : : "r"(ROOM(trip)));
    uint32_t id = clobber(trip, arrive);
    trip->work++;
    return id;
}

static OPAQUE OMIT uint32_t land_without_frame_pointer(struct trip *trip)
{
    __asm__ volatile("" : : "r"(ROOM(trip)));
    uint32_t id = hook();
    trip->work++;
    return id;
}

#if defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__) /* usually under an emulator */
enum { KNOWN = 50000 };
#else
enum { KNOWN = 1000000 };
#endif

/* Goes a few ways again and again, and now and then replaces one of them by a new one. */
static OPAQUE void wander(volatile int *work)
{
    enum { WAYS = 12, ROUNDS = 40 };
    struct trip trip = {.work = 0};
    uint32_t way[WAYS], next = 1, pick = 1;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uint64_t matches = 0, trips = 0;
    for (; matches < KNOWN; trips++) {
        if (trips < WAYS || trips % ROUNDS == 0)
            way[trips % WAYS] = next++ * 2654435761u;
        pick = pick * 1664525 + 1013904223;
        trip.random = way[(pick >> 8) % (trips < WAYS ? trips + 1 : WAYS)];
        trip.left = draw(&trip, 5);
        trip.floor = here - 8192 - 512 * draw(&trip, 2);
        uint64_t before = unwound;
        next_of (&trip)(&trip);
        matches += unwound == before;
    }
    *work += trip.work;
    CHECK(trips < 2 * KNOWN);
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
        ".size with_frame_pointer, . - with_frame_pointer\n"
        ".globl clobber\n"
        ".type clobber, @function\n"
        "clobber:\n"
        "    .cfi_startproc\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    mov $7, %ebp\n"
        "    call *%rsi\n"
        "    pop %rbp\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size clobber, . - clobber\n");
#else
uint32_t with_frame_pointer(uintptr_t value)
{
    return value ? hook() : 0;
}

uint32_t clobber(struct trip *trip, step *next)
{
    return next(trip);
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
    CHECK(unwound < 100); /* of 10000: not even if two callers take turns */
    for (int i = 0; i < CALLERS; i++)
        for (int j = 0; j < i; j++)
            CHECK(ids[i] != ids[j]);
    for (int round = 0; round < 20; round++)
        for (int depth = 0; depth < LT_STACK_MAX + 20; depth += 7) /* the last are cut, not wrong */
            deep(depth, &work);
    for (unsigned round = 0; round < 2000; round++)
        elastic(round * 37 % 300, &work);
    uint64_t before = unwound;
    for (uintptr_t value = 1; value < 2000; value++)
        with_frame_pointer(value);
    CHECK(unwound - before < 10);
#if defined(__x86_64__)
    before = unwound;
    CHECK(hook_of_registration());
    CHECK_EQUAL(unwound, before);
#endif
    wander(&work);
    CHECK(compared > KNOWN);
    return 0;
}
