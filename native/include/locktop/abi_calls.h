/* The call trees in the shared memory. A part of abi.h: its rules hold here, too. Programs that
 * were built with -finstrument-functions call the library at the begin and the end of functions. */
#ifndef LOCKTOP_ABI_CALLS_H
#define LOCKTOP_ABI_CALLS_H

#include <stdint.h>

#include "locktop/abi_array.h"

enum {
    LT_CALLS_ON = 1,               /* in lt_control.calls, which is (epoch << 8) | on */
    LT_CALLS_DEPTH = 256,          /* open calls of a thread, the default */
    LT_CALLS_DEPTH_MAX = 65536,    /* and at most */
    LT_CALLS_NODES = 65536,        /* nodes of a thread's tree */
    LT_CALLS_NODES_ENDED = 262144, /* nodes of the tree of all ended threads */
    LT_CALLS_SIZE = 376
};

/* A node of a call tree: all calls of a function that came from the same chain of callers. Node 0
 * is the root, which is no function. A parent always has a lower index than its child. Times are
 * ticks, and of ended calls alone. A short call (LOCKTOP_CALLS_MIN_US) adds to `count` and
 * `short_count`, and its time stays in the caller's own time. */
struct lt_call {
    uint64_t function; /* its first address; 0: no node (yet) */
    uint32_t parent;   /* index */
    uint32_t index;    /* of this node */
    uint64_t count;    /* calls, also those that go on */
    uint64_t ticks;
    uint64_t callee_ticks; /* of them in callees that have times of their own */
    uint64_t wait_ticks;   /* of them in waits for locks, also in callees */
    uint64_t short_count;
    uint64_t latest; /* the library's own: address of the child that was called last */
};

/* A call that goes on. Frame 0 belongs to the root. */
struct lt_call_frame {
    uint64_t node;         /* the library's own: address of the node */
    uint64_t begin;        /* ticks */
    uint64_t callee_ticks; /* in callees that have ended */
    uint64_t waited;       /* lt_thread.waited when the call began */
    uint64_t frame;        /* the library's own: where the stack ended in the hook */
    uint64_t site;         /* return address of the call */
    uint64_t hook_site;    /* the library's own: return address of the hook */
    uint32_t index;        /* of the node */
    uint32_t return_above; /* the library's own: bytes from `frame` up to the return address */
};

/* The call tree of one thread, or of all threads that ended. The library writes a frame, then
 * `depth`. A call that ends first adds to its node, then lowers `depth`. A reader copies the
 * frames before and after the nodes. A call that is in both copies was open all the time. */
struct lt_calls {
    uint32_t depth;        /* frames of open calls, and that of the root */
    uint32_t depth_room;   /* frames that fit */
    uint64_t frames;       /* offset of depth_room struct lt_call_frame */
    uint64_t last;         /* ticks when a call began or ended for the last time */
    uint64_t too_deep;     /* calls beyond the depth limit */
    uint64_t left_out;     /* calls that were not counted for other reasons, such as no room */
    uint64_t unmatched;    /* ends of calls whose begin was not seen */
    uint32_t control;      /* the lt_control.calls that the frames belong to */
    uint32_t epoch;        /* of lt_control.mode, the same */
    uint64_t own[12];      /* the library's own */
    struct lt_array nodes; /* of struct lt_call */
};

#endif
