/* Tests of the call tree: names of functions, the tree's growth and merging, and calls that end in
 * each way. The frames are those of a stack that grows downwards. */
#include <string.h>

#include "base/settings.h"
#include "base/tls.h"
#include "calls/call_filter.h"
#include "calls/call_stack.h"
#include "calls/call_tree.h"
#include "calls/function_name.h"
#include "check.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "stack/capture.h"
#include "stack/handler_stack.h"

static void check_name(const char *symbol, const char *expected)
{
    char name[FUNCTION_NAME_MAX];
    function_name_read(symbol, name, sizeof name);
    if (strcmp(name, expected) != 0) {
        fprintf(stderr, "%s: %s, expected %s\n", symbol, name, expected);
        exit(1);
    }
}

static void names(void)
{
    check_name("main", "main");
    check_name("deflate.part.0", "deflate");
    check_name("_ZL3runv", "run");
    check_name("_ZN5outer5inner4workEi", "outer::inner::work");
    check_name("_ZNK5outer5Store3getEv", "outer::Store::get");
    check_name("_ZN5outer5StoreC1Ei", "outer::Store::Store");
    check_name("_ZN5outer5StoreD2Ev", "outer::Store::~Store");
    check_name("_ZN5outer5Store3addIdEEvT_", "outer::Store::add");
    check_name("_ZN12_GLOBAL__N_16hiddenEi", "hidden");
    check_name("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back");
    check_name("_ZSt4sortIPiEvT_S1_", "std::sort");
    check_name("_ZN2ns3MapINS_3KeyESt4pairIiNS_5ValueEEE6insertEv", "ns::Map::insert");
    check_name("_ZZN2ns1fEvENKUlvE_clEv", "ns::f");
    check_name("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
    check_name("_ZN3foo", "foo");
    check_name("_ZN9999foo", "_ZN9999foo");
    check_name("_Z", "_Z");
    check_name("_ZN2nsI", "ns");
    CHECK(function_name_matches("get_one", "set*,get*"));
    CHECK(function_name_matches("get_one", "get_one"));
    CHECK(!function_name_matches("get_one", "get,get_,one*,,"));
    CHECK(function_name_matches("get_one", " set_one , get_one "));
    CHECK(!function_name_matches("get_one", " , ,get one, "));
    CHECK(function_name_matches("_ZN5outer5inner4workEi", "outer::"));
    CHECK(function_name_matches("_ZN5outer5inner4workEi", "outer::inner::w*"));
    CHECK(!function_name_matches("_ZN9outermost4workEi", "outer::,outer::*,work"));
}

/* A call at `depth` words below the top of a pretended stack; its return address lies two above. */
static struct traced call_at(uint64_t function, uint64_t depth)
{
    uint64_t frame = 0x7000000 - 8 * depth;
    return (struct traced){function, 0x1000 + depth, 0x2000 + depth, frame, frame + 16};
}

static uint64_t count_of(struct lt_calls *calls, uint32_t index)
{
    const struct lt_call *node = array_at(&calls->nodes, index);
    return node->count;
}

static void ends_and_jumps(struct lt_calls *calls)
{
    struct traced outer = call_at(0x100, 10), middle = call_at(0x200, 20);
    struct traced inner = call_at(0x300, 30);
    call_begins(calls, &outer);
    call_begins(calls, &middle);
    call_begins(calls, &inner);
    CHECK_EQUAL(calls->depth, 4);
    call_ends(calls, &inner, lt_now());
    call_ends(calls, &middle, lt_now());
    CHECK_EQUAL(calls->depth, 2);
    call_begins(calls, &middle);
    call_begins(calls, &inner);
    /* inner was left by longjmp(), and middle ends by a jump to the hook */
    struct traced tail = middle;
    tail.hook_site = middle.site;
    tail.frame = middle.return_at;
    call_ends(calls, &tail, lt_now());
    CHECK_EQUAL(calls->depth, 2);
    call_begins(calls, &middle);
    struct traced sibling = call_at(0x400, 20);
    sibling.site = 0x9999;
    call_begins(calls, &sibling); /* middle was left */
    CHECK_EQUAL(calls->depth, 3);
    call_ends(calls, &sibling, lt_now());
    call_ends(calls, &outer, lt_now());
    CHECK_EQUAL(calls->depth, 1);
    call_ends(calls, &outer, lt_now());
    CHECK_EQUAL(calls->unmatched, 1);
    CHECK_EQUAL(calls->nodes.count, 5);
    const uint64_t counts[] = {0, 1, 3, 2, 1};
    for (uint32_t i = 0; i < 5; i++)
        CHECK_EQUAL(count_of(calls, i), counts[i]);
}

static void own_times_add_up(struct lt_calls *calls)
{
    uint64_t own = 0, roots = 0;
    for (uint32_t i = 1; i < calls->nodes.count; i++) {
        const struct lt_call *node = array_at(&calls->nodes, i);
        CHECK(node->parent < i && node->index == i);
        CHECK(node->callee_ticks <= node->ticks);
        own += node->ticks - node->callee_ticks;
        roots += node->parent ? 0 : node->ticks;
    }
    CHECK_EQUAL(own, roots);
}

static void depth_limit(struct lt_calls *calls)
{
    uint64_t before = calls->too_deep;
    for (uint64_t depth = 1; depth <= 300; depth++) {
        struct traced call = call_at(0x500, 10 * depth);
        call_begins(calls, &call);
    }
    CHECK_EQUAL(calls->depth, 1 + LT_CALLS_DEPTH);
    CHECK_EQUAL(calls->too_deep, before + 300 - LT_CALLS_DEPTH);
    for (uint64_t depth = 300; depth; depth--) {
        struct traced call = call_at(0x500, 10 * depth);
        call_ends(calls, &call, lt_now());
    }
    CHECK_EQUAL(calls->depth, 1);
    CHECK_EQUAL(calls->unmatched, 1);
}

static void many_nodes_and_their_sum(struct lt_calls *calls)
{
    uint64_t offset = call_tree_new(LT_CALLS_NODES);
    struct lt_calls *sum = shm_ptr(offset);
    struct traced caller = call_at(0x600, 10), callee = call_at(0, 20);
    call_begins(calls, &caller);
    for (uint64_t i = 0; i < LT_CALLS_NODES + 10; i++) {
        callee.function = 0x10000 + i;
        call_begins(calls, &callee);
        call_ends(calls, &callee, lt_now());
    }
    call_ends(calls, &caller, lt_now());
    CHECK_EQUAL(calls->nodes.count, LT_CALLS_NODES);
    CHECK(calls->left_out > 10 && calls->left_out < 1000);
    own_times_add_up(calls);
    call_tree_merge(calls, sum);
    own_times_add_up(sum);
    CHECK_EQUAL(sum->nodes.count, LT_CALLS_NODES);
    for (uint32_t i = 0; i < sum->nodes.count; i++)
        CHECK_EQUAL(count_of(sum, i), count_of(calls, i));
    call_tree_unloaded(sum, 0x10000, 0x10001);
    struct lt_call *root = call_root(sum);
    CHECK(call_child(sum, root, 0x100)->count == 1);
    call_tree_clear(calls);
    CHECK_EQUAL(calls->nodes.count, 1);
}

/* A library that is loaded and unloaded without end uses the entries of its functions again. */
static void functions_of_unloaded_code(void)
{
    enum { FUNCTIONS = 1000, ROUNDS = 300 };
    strcpy(lt_settings.calls_match, "nothing");
    call_filter_init();
    CHECK(lt_call_filter.table != NULL);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < FUNCTIONS; i++)
            CHECK(!call_filter_find(0x1000000 + 64 * i));
        call_filter_unloaded(0x1000000, 0x2000000);
    }
    CHECK(lt_call_filter.count < 4 * FUNCTIONS);
    CHECK(!call_filter_find((uint64_t)(uintptr_t)functions_of_unloaded_code));
    lt_settings.calls_match[0] = 0;
}

static NOINLINE bool is_left_below(void)
{
    uintptr_t deeper[64];
    __asm__ volatile("" : : "r"(deeper) : "memory");
    return work_was_left(FRAME());
}

/* Work that a signal handler left for ever is over when a hook further up finds the thread busy. */
static void work_that_was_left(void)
{
    uint32_t mode = thread_busy(lt_own.block);
    CHECK(!is_left_below());
    CHECK_EQUAL(lt_own.busy, 1);
    lt_own.busy_frame -= 64;
    CHECK(work_was_left(FRAME()));
    CHECK_EQUAL(lt_own.busy, 0);
    thread_ready(lt_own.block, mode); /* the work goes on after all */
    CHECK_EQUAL(lt_own.busy, 0);
    CHECK(watched());
}

int main(void)
{
    names();
    CHECK(watched());
    work_that_was_left();
    functions_of_unloaded_code();
    struct lt_calls *calls = calls_ready(true);
    CHECK(calls && calls->depth == 1);
    ends_and_jumps(calls);
    own_times_add_up(calls);
    depth_limit(calls);
    own_times_add_up(calls);
    many_nodes_and_their_sum(calls);
    return 0;
}
