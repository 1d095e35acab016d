/* The nodes of a call tree. One thread at a time adds nodes to a tree. Others may look there. */
#ifndef LOCKTOP_CALL_TREE_H
#define LOCKTOP_CALL_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* Nodes by parent and function, with open addressing. */
struct call_table {
    uint64_t bits; /* log2 of the capacity */
    struct lt_call *entry[];
};

/* The part of a tree that only the library needs, in lt_calls.own. */
struct call_tree {
    struct call_table *table;
    uint32_t nodes_max;
    uint32_t grower; /* the thread or process that adds to the tree, 0 none */
    struct lt_call_frame *frames;
    uint64_t min_ticks;      /* shorter calls are only counted */
    uint64_t skipped;        /* frame of the outermost open call that is not counted, 0 none */
    uint64_t skipped_return; /* where its return address lies */
    uint64_t skipped_function;
    uint32_t skipped_inlined; /* open calls of that function that are parts of it */
    uint32_t depth_limit;     /* frames that have room; 0 in a call that is not counted */
    uint32_t is_too_deep;     /* why it is not counted */
};

static inline struct call_tree *call_tree_of(struct lt_calls *calls)
{
    return (struct call_tree *)calls->own;
}

/* Makes an empty tree with a root; 0 if there is no room, else its offset. */
uint64_t call_tree_new(uint32_t nodes_max);

/* Empties a tree, down to its root. */
void call_tree_clear(struct lt_calls *calls);

struct lt_call *call_root(struct lt_calls *calls);

/* The node of a function below `parent`, NULL if there is none. Another thread may add nodes
 * meanwhile. */
struct lt_call *call_known(struct lt_calls *calls, struct lt_call *parent, uint64_t function);

/* The same, made if it is new. NULL if there is no room. Counts nothing. The caller has made the
 * thread busy: a signal handler must not change the tree meanwhile. */
struct lt_call *call_child(struct lt_calls *calls, struct lt_call *parent, uint64_t function);

/* Adds the figures of a tree to those of another one. The first must be cleared afterwards. */
void call_tree_merge(struct lt_calls *from, struct lt_calls *to);

/* Flags the nodes of functions in unloaded code. */
void call_tree_unloaded(struct lt_calls *calls, uint64_t start, uint64_t end);

#pragma GCC visibility pop

#endif
