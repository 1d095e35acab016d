/* The lock orders in the shared memory, and the lives of threads. A part of abi.h: its rules hold
 * here, too. */
#ifndef LOCKTOP_ABI_ORDERS_H
#define LOCKTOP_ABI_ORDERS_H

#include <stdint.h>

enum {
    LT_ORDER_HELD = 8, /* locks of one struct lt_order */
    LT_ORDER_SEEN = 11 /* threads of one struct lt_order */
};

enum lt_order_flags {
    /* 1 << n: held[n] was held for reading */
    LT_ORDER_SHARED = 1 << 8, /* the lock was wanted for reading */
    LT_ORDER_CUT = 1 << 9,    /* more were held than the list names: it has those taken last */
    /* LT_ORDER_KNOWN << n: held[n] had its cookie (order/lock_cookie.h), so while it lives no other
     * lock has its id and life. LT_ORDER_KNOWN << LT_ORDER_HELD: the same for the wanted lock. */
    LT_ORDER_KNOWN = 1 << 16
};

/* Threads wanted a lock, without a time limit, while they held others. One entry for each set of
 * these locks with the same stack and call sites, for all threads. A lock's "life" is made of its
 * generation, destroyed and cookies (struct lt_lock): another life is another lock. */
struct lt_order {
    uint64_t hash;  /* of epoch to held_life; 0: no entry (yet) */
    uint32_t next;  /* next order + 1 in the hash chain */
    uint32_t stack; /* of each of these threads, 0 unknown */
    uint32_t epoch; /* see struct lt_control; the hooks may miss joins between epochs */
    uint32_t lock;  /* id of the wanted lock */
    uint32_t life;  /* the life of the wanted lock */
    uint32_t flags; /* enum lt_order_flags */
    uint32_t held_count;
    uint32_t reserved;
    uint32_t held[8];      /* ids, in the order in which they had been taken */
    uint32_t held_life[8]; /* the lives of the held locks */
    uint64_t site[8];      /* return address of the call that took each, 0 unknown */
    /* (birth << 32) | segment, see struct lt_life; 0 none. The first threads and the latest */
    uint64_t seen[11];
};

/* The beginning and the end of a thread that took locks while it held others, or that created
 * threads. A thread's life is a row of segments, counted from 0. Each thread that it creates or
 * joins begins a new one. */
struct lt_life {
    uint64_t pthread;
    uint32_t birth; /* lt_thread.birth; 0: no entry yet */
    uint32_t tid;
    uint32_t creator;    /* birth of the creator, 0 unknown */
    uint32_t created_in; /* the creator's segment that the creation ended */
    uint32_t joiner;     /* birth of the thread that joined it, 0: not joined yet */
    uint32_t joined_in;  /* the joiner's segment that the join began */
    uint32_t next;       /* the next life + 1 in a hash chain */
    uint32_t reserved;
};

#endif
