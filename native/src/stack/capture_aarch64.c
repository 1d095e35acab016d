/* Captures a stack on aarch64. By the procedure call standard, every function that calls another
 * keeps a frame record. The record is the caller's record, then the return address. */
#if defined(__aarch64__)
#include <pthread.h>
#include <stdint.h>

#include "base/tls.h"
#include "shm/arena.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "stack/stack_state.h"
#include "tables/stack_table.h"

/* Memory for one capture, which is not on the stack: that may be small. */
struct stack_cache {
    uint64_t frames[LT_STACK_MAX];
};

extern void *__libc_stack_end; /* end of the first thread's stack; the loader's variable */

void stack_capture_init(void)
{
}

/* An address above everything that the thread may read as its stack. libc keeps its own data of a
 * thread at the end of the thread's stack. The first thread's stack lies above its data. */
static uintptr_t stack_limit(uintptr_t frame)
{
    uintptr_t self = (uintptr_t)pthread_self();
    return frame < self ? self : (uintptr_t)__libc_stack_end;
}

/* The return address without the signature that a function may have put into it (pacibsp). */
static uint64_t plain(uintptr_t address)
{
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint #7" : "+r"(x30)); /* xpaclri: does nothing on older processors */
    return x30;
}

/* Follows the frame records. A function that uses the register for something else ends the stack,
 * or hides one of its callers. */
static uint32_t walk(const uintptr_t *record, uint64_t *frames, uint32_t room)
{
    uintptr_t limit = stack_limit((uintptr_t)record);
    uint32_t depth = 0;
    for (;;) {
        uint64_t address = plain(record[1]);
        if (!address)
            return depth;
        if (depth == room)
            return depth | LT_STACK_CUT;
        frames[depth++] = address;
        uintptr_t next = record[0];
        if (next <= (uintptr_t)record || next > limit - 2 * sizeof *record || next % 16)
            return depth;
        record = (const uintptr_t *)next;
    }
}

static uint64_t *frames_of(struct lt_thread *t)
{
    struct stack_state *state = stack_state(t);
    if (!state->cache) {
        uint64_t offset = shm_alloc(sizeof(struct stack_cache));
        if (!offset)
            return NULL;
        state->cache = shm_ptr(offset);
    }
    struct stack_cache *cache = state->cache;
    return cache->frames;
}

static NOINLINE uint32_t capture_without_memory(const uintptr_t *frame)
{
    uint64_t frames[32];
    return stack_id(frames, walk(frame, frames, 32));
}

uint32_t stack_capture(struct lt_thread *t, const uintptr_t *frame)
{
    uint64_t *frames = frames_of(t);
    return frames ? stack_id(frames, walk(frame, frames, LT_STACK_MAX))
                  : capture_without_memory(frame);
}

uint32_t stack_capture_inner(struct lt_thread *t, const uintptr_t *frame)
{
    uint64_t frames[INNER_FRAMES];
    (void)t;
    return stack_id(frames, walk(frame, frames, INNER_FRAMES));
}
#endif
