/* Captures a stack on x86-64. The unwinder finds a stack once. After that the thread knows the
 * stack again by the words that led the unwinder. */
#if defined(__x86_64__)
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "base/clock.h"
#include "base/tls.h"
#include "shm/arena.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "stack/handler_stack.h"
#include "stack/stack_state.h"
#include "tables/held_list.h"
#include "tables/stack_table.h"

enum { CACHE_SET_BITS = 2, CACHE_WAYS = 8, ANCHORS = 8 };
/* The process unwinds so many inner stacks, in some 50 ms. More than these take at most one part in
 * so many of its life. */
enum { INNER_FREE = 1 << 15, INNER_SHARE = 64 };
enum { RBP = 6 }; /* DWARF's number of the register (System V ABI, figure 3.36) */

/* A word of the stack that the unwinder read besides the return addresses. Most often that is a
 * saved frame pointer, by which the unwinder left a frame of no fixed size. */
struct anchor {
    uint32_t distance; /* from the slot to the word, bytes */
    uint32_t leads_to; /* from the slot to the address that the word holds, bytes */
};

/* A stack that the thread has had before, and the words that led the unwinder from frame to frame.
 * If the words still hold the same, the unwinder would find the same stack. The unwinder starts at
 * the same address with the same frame pointer and reads just those words. */
struct cached_stacks {
    struct cached_stack {
        uintptr_t address; /* the hook's return address */
        uintptr_t slot;    /* where the return address lies */
        /* the caller's frame pointer; 0 if the unwinder left no frame by it */
        uintptr_t frame_pointer;
        uint32_t id; /* 0 = empty */
        uint16_t depth;
        uint16_t anchors;
        /* Below these return addresses lies a word that leads to the word below the next one. A
         * program whose functions all keep a frame record has no other anchors. */
        uint16_t chain_begin, chain_end;
        const uint64_t *frames;
        uint32_t *distance; /* of each return address from `slot`, bytes */
        uint32_t room;      /* capacity of `distance` */
        struct anchor anchor[ANCHORS];
    } entry[1 << CACHE_SET_BITS][CACHE_WAYS]; /* stacks of one call site in one set */
    uint8_t oldest[1 << CACHE_SET_BITS];      /* the entry to fill next */
};

struct stack_cache {
    struct cached_stacks cached;
    /* for one unwinding */
    uint64_t frames[LT_STACK_MAX];
    uint32_t distance[LT_STACK_MAX];
    uintptr_t frame_pointer[LT_STACK_MAX];
};

/* One unwinding. Its arrays lie in the thread's cache, not on the stack, which may be small. */
struct walk {
    uintptr_t slot; /* of the hook itself: the frames before it are the library's */
    bool started;
    bool is_regular; /* every return address lies right below its frame's CFA */
    bool cut;        /* the stack has more frames */
    uint32_t room;
    uint32_t depth;
    uint64_t *frames;
    uint32_t *distance;
    uintptr_t *frame_pointer; /* in the function to which the address returns */
};

/* The first unwinding binds the functions that the unwinder calls. For that the loader saves all
 * registers, some 2.6 KB, which a small stack of the program may not have. */
static _Unwind_Reason_Code nothing(struct _Unwind_Context *context, void *argument)
{
    (void)context;
    (void)argument;
    return _URC_NO_REASON;
}

/* Where the unwinder's code lies, and the allocator's if the allocator is a library of its own.
 * Each of the two may call the other. */
static struct code {
    uintptr_t inside; /* the address of one of its functions */
    uintptr_t begin, end;
} unwinder, allocator;

/* The unwindings of inner stacks in this process, and their time. */
static struct {
    uint64_t count, ticks;
} inner_unwindings;

static void find_in(const struct dl_phdr_info *object, struct code *code)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && code->inside - begin < part->p_memsz) {
            code->begin = begin;
            code->end = begin + part->p_memsz;
        }
    }
}

static int find_code(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    find_in(object, &unwinder);
    if (object
            /* not the program itself, which has more locks than those of its allocator */
            ->dlpi_name[0])
        find_in(object, &allocator);
    return 0;
}

void stack_capture_init(void)
{
    if (!unwinder.inside) { /* not in a forked child: another thread may have been in the loader */
        unwinder.inside = (uintptr_t)&_Unwind_Backtrace;
        allocator.inside = (uintptr_t)&malloc;
        dl_iterate_phdr(find_code, NULL);
    }
    _Unwind_Backtrace(nothing, NULL);
    inner_unwindings.count = inner_unwindings.ticks =
        0; /* in a forked child they are the parent's */
}

static inline bool lies_in(uintptr_t address, const struct code *code)
{
    return address - code->begin < code->end - code->begin;
}

/* The unwinder takes some 8 KB. A signal handler on a stack of its own may have less. */
enum { UNWINDER_STACK = 16 << 10 };

/* Whether the stack is too small for the unwinder, or the thread holds a lock of the unwinder or of
 * the allocator. If the program registered code with the unwinder (__register_frame), the unwinder
 * takes a lock of its own and may allocate. The thread must not enter the unwinder while it does
 * so, nor while the allocator has a lock. From GCC 13 on most locks of the unwinder are no mutexes,
 * and no hook sees them. */
static bool must_not_unwind(struct lt_thread *t, const uintptr_t *frame)
{
    if (UNLIKELY(stack_registering))
        return true;
    stack_t of_handler = handler_stack();
    if (of_handler.ss_size && (uintptr_t)frame - (uintptr_t)of_handler.ss_sp < UNWINDER_STACK)
        return true;
    for (uint32_t offset = 0; offset < t->held_top; offset += (uint32_t)sizeof(struct lt_held))
        if (lies_in(held_at(t, offset)->site, &unwinder) ||
            lies_in(held_at(t, offset)->site, &allocator))
            return true;
    return false;
}

/* The unwinder's callback for a frame. The unwinder's CFA is still the one of the frame before. So
 * on x86-64 the return address lies one word below it. A frame that a signal interrupted has no
 * such word. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    int interrupted = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &interrupted);
    uintptr_t slot = _Unwind_GetCFA(context) - sizeof(uintptr_t);
    if (!walk->started) {
        if (slot != walk->slot)
            return _URC_NO_REASON;
        walk->started = true;
    }
    if (address == 0)
        return _URC_END_OF_STACK;
    if (walk->depth == walk->room) {
        walk->cut = true;
        return _URC_END_OF_STACK;
    }
    uintptr_t distance = slot - walk->slot;
    /* Nor is that memory readable: below an interrupted frame may lie a guard page. */
    if (interrupted || distance > UINT32_MAX || *(const uintptr_t *)slot != address)
        walk->is_regular = false;
    walk->frames[walk->depth] = address;
    walk->frame_pointer[walk->depth] = _Unwind_GetGR(context, RBP);
    walk->distance[walk->depth++] = (uint32_t)distance;
    return _URC_NO_REASON;
}

/* Such a function also reads the memory between a frame's variables, which AddressSanitizer uses in
 * unit tests. */
#ifdef __SANITIZE_ADDRESS__
#define READS_STACK __attribute__((no_sanitize("address")))
#else
#define READS_STACK /* a function with this attribute is never inlined */
#endif

READS_STACK static bool unchanged(const struct cached_stack *cached)
{
    const uint32_t *distance = cached->distance;
    const uint64_t *frames = cached->frames;
    uintptr_t first = cached->slot;
    /* the first frame too: it may be flagged as unloaded */
    for (uint32_t i = 0; i < cached->depth; i++)
        if (*(const uintptr_t *)(first + distance[i]) != frames[i])
            return false;
    uintptr_t next = first + distance[cached->chain_end];
    for (uint32_t i = cached->chain_end; i-- > cached->chain_begin;) {
        uintptr_t slot = first + distance[i];
        if (*((const uintptr_t *)slot - 1) + sizeof slot != next)
            return false;
        next = slot;
    }
    for (uint32_t i = 0; i < cached->anchors; i++) {
        const struct anchor *anchor = &cached->anchor[i];
        if (*(const uintptr_t *)(first + anchor->distance) != first + anchor->leads_to)
            return false;
    }
    return true;
}

static struct stack_cache *cache_of(struct lt_thread *t)
{
    struct stack_state *state = stack_state(t);
    if (!state->cache) {
        uint64_t offset = shm_alloc(sizeof(struct stack_cache));
        if (!offset)
            return NULL;
        state->cache = shm_ptr(offset);
    }
    return state->cache;
}

static unsigned cache_set(const uintptr_t *frame)
{
    uint64_t hash = (frame[1] ^ ((uintptr_t)(frame + 1) << 7)) * 0x9e3779b97f4a7c15u;
    return (unsigned)(hash >> (64 - CACHE_SET_BITS));
}

static uint32_t cache_find(const struct cached_stacks *stacks, const uintptr_t *frame)
{
    const struct cached_stack *set = stacks->entry[cache_set(frame)];
    for (const struct cached_stack *cached = set; cached < set + CACHE_WAYS; cached++)
        if (cached->id && cached->address == frame[1] && cached->slot == (uintptr_t)(frame + 1) &&
            (!cached->frame_pointer || cached->frame_pointer == frame[0]) && unchanged(cached))
            return cached->id;
    return 0;
}

/* Where the frames of a walk lie. Frame i, into which address i returns, begins above the slot of
 * address i. Frame i ends above the slot of address i + 1. */
static uintptr_t frame_begin(const struct walk *walk, uint32_t i)
{
    return walk->slot + walk->distance[i] + sizeof(uintptr_t);
}

READS_STACK static bool anchor_add(struct cached_stack *cached, const struct walk *walk,
                                   const uintptr_t *word)
{
    if (cached->anchors == ANCHORS)
        return false;
    cached->anchor[cached->anchors++] =
        (struct anchor){(uint32_t)((uintptr_t)word - walk->slot), (uint32_t)(*word - walk->slot)};
    return true;
}

READS_STACK static bool anchor_equal(struct cached_stack *cached, const struct walk *walk,
                                     const uintptr_t *begin, const uintptr_t *end, uintptr_t value)
{
    for (const uintptr_t *word = begin; word < end; word++)
        if (*word == value && !anchor_add(cached, walk, word))
            return false;
    return true;
}

/* Whether the frame pointer leads into its function's own frame, as in a frame of no fixed size.
 * Every other frame ends at a fixed distance from its beginning. */
static bool is_led_to(const struct walk *walk, uint32_t i)
{
    uintptr_t pointer = walk->frame_pointer[i];
    return pointer >= frame_begin(walk, i) && pointer < frame_begin(walk, i + 1) &&
           pointer % sizeof pointer == 0;
}

/* Whether frame i ends with a frame record that holds `value` and is the next of the chain. */
READS_STACK static bool chain_extend(struct cached_stack *cached, const struct walk *walk,
                                     uint32_t i, uintptr_t value)
{
    const uintptr_t *slot = (const uintptr_t *)frame_begin(walk, i + 1) - 1;
    if (slot[-1] != value || value + 2 * sizeof value != frame_begin(walk, i + 2))
        return false;
    if (cached->chain_end == 0)
        cached->chain_begin = (uint16_t)(i + 1);
    else if (cached->chain_end != i + 1)
        return false;
    cached->chain_end = (uint16_t)(i + 2);
    return true;
}

/* Anchors the words of frame i where its function may have saved `value`, the caller's frame
 * pointer. A function that keeps a frame record saves it right below the return address. Other
 * functions save it near the frame's end, but not below the function's frame pointer, where another
 * stack may lie. The unwinder does not tell which word it is, so every word that holds `value`
 * counts. False if there are too many. */
static bool anchor_saved(struct cached_stack *cached, const struct walk *walk, uint32_t i,
                         uintptr_t value, bool *has_anchor)
{
    enum { SEARCHED = 512 };
    const uintptr_t *end = (const uintptr_t *)frame_begin(walk, i + 1) - 1;
    const uintptr_t *begin =
        (const uintptr_t *)(is_led_to(walk, i) ? walk->frame_pointer[i] : frame_begin(walk, i));
    if (end - begin > SEARCHED)
        begin = end - SEARCHED;
    uint32_t before = cached->anchors;
    bool chained = end > begin && chain_extend(cached, walk, i, value);
    bool all = anchor_equal(cached, walk, begin, end - chained, value);
    *has_anchor |= chained || cached->anchors > before;
    return all;
}

/* Anchors the word from which frame i's frame pointer was restored. The function inside frame i
 * saved it. If that function left the register alone, the next inner function saved it, and so on
 * to the hook's caller. */
static bool anchor_frame_pointer(struct cached_stack *cached, const struct walk *walk, uint32_t i)
{
    uintptr_t value = walk->frame_pointer[i];
    bool has_anchor = false;
    for (uint32_t inner = i; inner-- > 0;) {
        if (!anchor_saved(cached, walk, inner, value, &has_anchor))
            return false;
        if (walk->frame_pointer[inner] != value)
            return has_anchor;
    }
    cached->frame_pointer = value;
    return true;
}

/* Anchors the copies of frame i's end that the function may keep near its frame pointer. A frame
 * that begins at an alignment boundary has no other way to its end. */
static bool anchor_end(struct cached_stack *cached, const struct walk *walk, uint32_t i)
{
    enum { REGISTERS = 8 }; /* registers saved between the two */
    const uintptr_t *pointer = (const uintptr_t *)walk->frame_pointer[i];
    const uintptr_t *begin = (const uintptr_t *)frame_begin(walk, i);
    uintptr_t end = frame_begin(walk, i + 1);
    if (pointer - begin > REGISTERS)
        begin = pointer - REGISTERS;
    return anchor_equal(cached, walk, begin, pointer, end);
}

static bool anchor_all(struct cached_stack *cached, const struct walk *walk)
{
    for (uint32_t i = 0; i + 1 < walk->depth; i++)
        if (is_led_to(walk, i) &&
            !(anchor_frame_pointer(cached, walk, i) && anchor_end(cached, walk, i)))
            return false;
    return true;
}

static bool make_room(struct cached_stack *cached, uint32_t depth)
{
    uint32_t room = cached->room ? cached->room : 16;
    while (room < depth)
        room *= 2;
    if (room == cached->room)
        return true;
    uint64_t offset = shm_alloc(room * sizeof *cached->distance);
    if (!offset)
        return false;
    cached->distance = shm_ptr(offset);
    cached->room = room;
    return true;
}

static void cache_fill(struct cached_stacks *stacks, const uintptr_t *frame,
                       const struct walk *walk, uint32_t id)
{
    unsigned set = cache_set(frame);
    struct cached_stack *cached = &stacks->entry[set][stacks->oldest[set]++ % CACHE_WAYS];
    cached->id = 0;
    cached->address = frame[1];
    cached->slot = walk->slot;
    cached->frame_pointer = 0;
    cached->anchors = cached->chain_begin = cached->chain_end = 0;
    cached->depth = (uint16_t)walk->depth;
    cached->frames = stack_frames(stack_at(id));
    if (!make_room(cached, walk->depth))
        return;
    memcpy(cached->distance, walk->distance, walk->depth * sizeof *walk->distance);
    if (anchor_all(cached, walk))
        cached->id = id;
}

static uint32_t entered(struct walk *walk, const uintptr_t *frame)
{
    walk->slot = (uintptr_t)(frame + 1);
    walk->is_regular = true;
    _Unwind_Backtrace(step, walk);
    if (walk->depth == 0) { /* there is no unwind information at all, but the caller is known */
        walk->frames[walk->depth++] = frame[1];
        walk->is_regular = false;
    }
    return stack_id(walk->frames, walk->depth | (walk->cut ? LT_STACK_CUT : 0));
}

static NOINLINE uint32_t unwind(const uintptr_t *frame, struct stack_cache *cache)
{
    struct walk walk = {.room = LT_STACK_MAX,
                        .frames = cache->frames,
                        .distance = cache->distance,
                        .frame_pointer = cache->frame_pointer};
    uint32_t id = entered(&walk, frame);
    if (id && walk.is_regular)
        cache_fill(&cache->cached, frame, &walk, id);
    return id;
}

/* Unwinds with arrays on the stack: there is no memory for a cache. */
static NOINLINE uint32_t unwind_without_cache(const uintptr_t *frame)
{
    enum { ROOM = 32 };
    uint64_t frames[ROOM];
    uint32_t distance[ROOM];
    uintptr_t frame_pointer[ROOM];
    struct walk walk = {
        .room = ROOM, .frames = frames, .distance = distance, .frame_pointer = frame_pointer};
    return entered(&walk, frame);
}

static uint32_t caller_alone(const uintptr_t *frame)
{
    uint64_t caller = frame[1];
    return stack_id(&caller, 1);
}

uint32_t stack_capture(struct lt_thread *t, const uintptr_t *frame)
{
    struct stack_cache *cache = cache_of(t);
    uint32_t id = cache ? cache_find(&cache->cached, frame) : 0;
    if (id)
        return id;
    if (UNLIKELY(must_not_unwind(t, frame)))
        return caller_alone(frame);
    return cache ? unwind(frame, cache) : unwind_without_cache(frame);
}

/* The inner stacks have a cache of their own: an initialisation and a wait may return to one
 * address. */
static struct cached_stacks *inner_stacks_of(struct lt_thread *t)
{
    struct stack_state *state = stack_state(t);
    if (!state->inner_cache) {
        uint64_t offset = shm_alloc(sizeof(struct cached_stacks));
        if (!offset)
            return NULL;
        state->inner_cache = shm_ptr(offset);
    }
    return state->inner_cache;
}

static bool has_time_for_inner(void)
{
    uint64_t life = lt_now() - lt_shm->clock0_ticks;
    return __atomic_load_n(&inner_unwindings.count, __ATOMIC_RELAXED) < INNER_FREE ||
           __atomic_load_n(&inner_unwindings.ticks, __ATOMIC_RELAXED) <= life / INNER_SHARE;
}

static NOINLINE uint32_t unwind_inner(const uintptr_t *frame, struct cached_stacks *stacks)
{
    uint64_t frames[INNER_FRAMES];
    uint32_t distance[INNER_FRAMES];
    uintptr_t frame_pointer[INNER_FRAMES];
    struct walk walk = {.room = INNER_FRAMES,
                        .frames = frames,
                        .distance = distance,
                        .frame_pointer = frame_pointer};
    uint64_t begun = lt_now();
    uint32_t id = entered(&walk, frame);
    if (id && walk.is_regular)
        cache_fill(stacks, frame, &walk, id);
    __atomic_fetch_add(&inner_unwindings.count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&inner_unwindings.ticks, lt_now() - begun, __ATOMIC_RELAXED);
    return id;
}

uint32_t stack_capture_inner(struct lt_thread *t, const uintptr_t *frame)
{
    struct cached_stacks *stacks = inner_stacks_of(t);
    uint32_t id = stacks ? cache_find(stacks, frame) : 0;
    if (id)
        return id;
    bool by_allocator = lies_in(frame[1], &unwinder) || lies_in(frame[1], &allocator);
    if (!stacks || by_allocator || must_not_unwind(t, frame) || !has_time_for_inner())
        return caller_alone(frame);
    return unwind_inner(frame, stacks);
}
#endif
