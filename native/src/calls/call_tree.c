/* The nodes of a call tree, found by parent and function. */
#include "calls/call_tree.h"

#include <string.h>

#include "shm/arena.h"
#include "shm/array.h"
#include "shm/segment.h"

enum { NODES_FIRST = 16, TABLE_BITS_FIRST = 6 };

_Static_assert(sizeof(struct call_tree) <= sizeof(((struct lt_calls *)0)->own), "own too small");

static uint64_t table_bytes(unsigned bits)
{
    return sizeof(struct lt_call *) << bits;
}

/* The entry of a node, or the empty one where the node belongs. */
static struct lt_call **entry_of(struct lt_call **table, unsigned bits, uint32_t parent,
                                 uint64_t function)
{
    uint64_t hash = (function ^ (uint64_t)parent << 40) * 0x9e3779b97f4a7c15u;
    uint64_t at = hash >> (64 - bits), mask = (1u << bits) - 1;
    while (table[at] && (table[at]->parent != parent || table[at]->function != function))
        at = (at + 1) & mask;
    return &table[at];
}

static struct lt_call **table_new(unsigned bits, uint64_t *offset)
{
    *offset = shm_alloc_reusable(table_bytes(bits));
    if (!*offset || !shm_reserve(*offset, table_bytes(bits)))
        return NULL;
    return shm_ptr(*offset);
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
    tree->table_bits = TABLE_BITS_FIRST;
    tree->table = table_new(TABLE_BITS_FIRST, &tree->table_at);
    return tree->table && root_push(calls) ? offset : 0;
}

void call_tree_clear(struct lt_calls *calls)
{
    struct call_tree *tree = call_tree_of(calls);
    array_clear(&calls->nodes);
    memset(tree->table, 0, table_bytes(tree->table_bits));
    root_push(calls);
    calls->too_deep = calls->left_out = calls->unmatched = 0;
}

struct lt_call *call_root(struct lt_calls *calls)
{
    return array_at(&calls->nodes, 0);
}

/* Moves the entries to a table of twice the size. Without room the table stays as it is. */
static void table_grow(struct lt_calls *calls)
{
    struct call_tree *tree = call_tree_of(calls);
    uint64_t offset;
    struct lt_call **table = table_new(tree->table_bits + 1, &offset);
    if (!table)
        return;
    for (uint32_t i = 0; i < 1u << tree->table_bits; i++) {
        struct lt_call *node = tree->table[i];
        if (node)
            *entry_of(table, tree->table_bits + 1, node->parent, node->function) = node;
    }
    uint64_t former = tree->table_at, size = table_bytes(tree->table_bits);
    tree->table = table;
    tree->table_at = offset;
    tree->table_bits++;
    shm_give_back(former, size);
}

static bool has_room(struct lt_calls *calls)
{
    struct call_tree *tree = call_tree_of(calls);
    uint32_t capacity = 1u << tree->table_bits;
    if (calls->nodes.count >= tree->nodes_max)
        return false;
    if (calls->nodes.count * 2 >= capacity)
        table_grow(calls);
    return calls->nodes.count < capacity / 8 * 7;
}

struct lt_call *call_child(struct lt_calls *calls, struct lt_call *parent, uint64_t function)
{
    struct call_tree *tree = call_tree_of(calls);
    struct lt_call *node = *entry_of(tree->table, tree->table_bits, parent->index, function);
    if (!node) {
        uint32_t index;
        node = has_room(calls) ? array_push(&calls->nodes, &index) : NULL;
        if (!node)
            return NULL;
        node->parent = parent->index;
        node->index = index;
        node->latest = (uint64_t)(uintptr_t)call_root(calls);
        __atomic_store_n(&node->function, function, __ATOMIC_RELEASE);
        *entry_of(tree->table, tree->table_bits, parent->index, function) = node;
    }
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
