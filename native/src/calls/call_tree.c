/* The nodes of a call tree, found by parent and function. */
#include "calls/call_tree.h"

#include <string.h>

#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"

enum { NODES_FIRST = 16, TABLE_BITS_FIRST = 6 };

_Static_assert(sizeof(struct call_tree) <= sizeof(((struct lt_calls *)0)->own), "own too small");

static uint64_t entry_bytes(uint64_t bits)
{
    return sizeof(struct lt_call *) << bits;
}

/* The entry of a node, or the empty one where the node belongs. */
static struct lt_call **entry_of(struct call_table *table, uint32_t parent, uint64_t function)
{
    uint64_t hash = (function ^ (uint64_t)parent << 40) * 0x9e3779b97f4a7c15u;
    uint64_t index = hash >> (64 - table->bits), mask = (1u << table->bits) - 1;
    for (;; index = (index + 1) & mask) {
        const struct lt_call *node = __atomic_load_n(&table->entry[index], __ATOMIC_ACQUIRE);
        if (!node || (node->parent == parent && node->function == function))
            return &table->entry[index];
    }
}

static struct call_table *table_new(uint64_t bits)
{
    uint64_t offset = shm_alloc(sizeof(struct call_table) + entry_bytes(bits));
    if (!offset)
        return NULL;
    struct call_table *table = shm_ptr(offset);
    table->bits = bits;
    return table;
}

static struct call_table *table_of(const struct lt_calls *calls)
{
    const struct call_tree *tree = (const struct call_tree *)calls->own;
    return __atomic_load_n(&tree->table, __ATOMIC_ACQUIRE);
}

static bool root_push(struct lt_calls *calls)
{
    uint32_t index;
    struct lt_call *root = array_push(&calls->nodes, &index);
    if (root)
        root->latest = (uint64_t)(uintptr_t)root; /* no function has the address 0 */
    return root != NULL;
}

uint64_t call_tree_new(uint32_t nodes_max)
{
    uint64_t offset = shm_alloc(sizeof(struct lt_calls));
    if (!offset)
        return 0;
    struct lt_calls *calls = shm_ptr(offset);
    struct call_tree *tree = call_tree_of(calls);
    array_init(&calls->nodes, sizeof(struct lt_call), NODES_FIRST);
    tree->nodes_max = nodes_max;
    tree->table = table_new(TABLE_BITS_FIRST);
    return tree->table && root_push(calls) ? offset : 0;
}

void call_tree_clear(struct lt_calls *calls)
{
    struct call_tree *tree = call_tree_of(calls);
    array_clear(&calls->nodes);
    memset(tree->table->entry, 0, entry_bytes(tree->table->bits));
    root_push(calls);
    calls->too_deep = calls->left_out = calls->unmatched = 0;
}

struct lt_call *call_root(struct lt_calls *calls)
{
    return array_at(&calls->nodes, 0);
}

/* Moves the entries to a table of twice the size. Without room the table stays as it is. A process
 * that shares this thread's memory may look into the former table, so that one stays as it is. */
static void table_grow(struct lt_calls *calls)
{
    struct call_table *former = table_of(calls), *table = table_new(former->bits + 1);
    if (!table)
        return;
    for (uint32_t i = 0; i < 1u << former->bits; i++) {
        struct lt_call *node = former->entry[i];
        if (node)
            *entry_of(table, node->parent, node->function) = node;
    }
    __atomic_store_n(&call_tree_of(calls)->table, table, __ATOMIC_RELEASE);
}

static bool has_room(struct lt_calls *calls)
{
    uint32_t capacity = 1u << table_of(calls)->bits;
    if (calls->nodes.count >= call_tree_of(calls)->nodes_max)
        return false;
    if (calls->nodes.count * 2 >= capacity)
        table_grow(calls);
    return calls->nodes.count < capacity / 8 * 7;
}

struct lt_call *call_known(struct lt_calls *calls, struct lt_call *parent, uint64_t function)
{
    struct lt_call *node = *entry_of(table_of(calls), parent->index, function);
    if (node)
        parent->latest = (uint64_t)(uintptr_t)node;
    return node;
}

struct lt_call *call_child(struct lt_calls *calls, struct lt_call *parent, uint64_t function)
{
    struct lt_call *node = call_known(calls, parent, function);
    if (node)
        return node;
    uint32_t index;
    node = has_room(calls) ? array_push(&calls->nodes, &index) : NULL;
    if (!node)
        return NULL;
    node->parent = parent->index;
    node->index = index;
    node->latest = (uint64_t)(uintptr_t)call_root(calls);
    __atomic_store_n(&node->function, function, __ATOMIC_RELEASE);
    __atomic_store_n(entry_of(table_of(calls), parent->index, function), node, __ATOMIC_RELEASE);
    parent->latest = (uint64_t)(uintptr_t)node;
    return node;
}

/* Callers come before their callees. `latest` of a node of `from` leads to the same node of `to`.
 * `from` needs that field no more. */
void call_tree_merge(struct lt_calls *from, struct lt_calls *to)
{
    uint32_t count = from->nodes.count;
    call_root(from)->latest = (uint64_t)(uintptr_t)call_root(to);
    to->too_deep += from->too_deep;
    to->left_out += from->left_out;
    to->unmatched += from->unmatched;
    for (uint32_t i = 1; i < count; i++) {
        struct lt_call *node = array_at(&from->nodes, i);
        const struct lt_call *above = array_at(&from->nodes, node->parent);
        struct lt_call *parent = (struct lt_call *)(uintptr_t)above->latest;
        struct lt_call *sum = parent ? call_child(to, parent, node->function) : NULL;
        node->latest = (uint64_t)(uintptr_t)sum;
        if (!sum) {
            to->left_out += node->count;
            continue;
        }
        sum->count += node->count;
        sum->ticks += node->ticks;
        sum->callee_ticks += node->callee_ticks;
        sum->wait_ticks += node->wait_ticks;
        sum->short_count += node->short_count;
    }
}

void call_tree_unloaded(struct lt_calls *calls, uint64_t start, uint64_t end)
{
    uint32_t count = __atomic_load_n(&calls->nodes.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 1; i < count; i++) {
        struct lt_call *node = array_at(&calls->nodes, i);
        uint64_t function = __atomic_load_n(&node->function, __ATOMIC_RELAXED);
        if (function >= start && function < end)
            __atomic_fetch_or(&node->function, 1ull << LT_UNLOADED_BIT, __ATOMIC_RELAXED);
    }
}
