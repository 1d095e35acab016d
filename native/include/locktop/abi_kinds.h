/* The kinds of lock and their traits. A part of abi.h: its rules hold here, too. cffi leaves the
 * macro out.
 *
 * A new kind gets a number below and a row in LT_KIND_ROWS. Then TRAITS in
 * collector/model/kinds.py gets a row, which also has the traits that only the tool asks. */
#ifndef LOCKTOP_ABI_KINDS_H
#define LOCKTOP_ABI_KINDS_H

enum lt_kind {
    LT_KIND_NONE = 0,
    LT_KIND_MUTEX = 1,
    LT_KIND_RWLOCK = 2,
    LT_KIND_SPIN = 3,
    LT_KIND_SEM = 4,
    LT_KIND_COND = 5,
    LT_KIND_BARRIER = 6,
    LT_KIND_JOIN = 7,
    LT_KIND_ONCE = 8,
    LT_KIND_FUTEX = 9,
    LT_KIND_CUSTOM = 10,
    LT_KIND_END,          /* one more than the last kind */
    LT_KIND_SHARED = 0x20 /* added in a record of the ring: a reader took the rwlock */
};

/* Bits. Each has the name of a trait in collector/model/kinds.py. */
enum lt_trait {
    LT_TRAIT_CONTENTION = 1,   /* a holder has what the waiter wants, and may be to blame */
    LT_TRAIT_SIGNALLED = 2,    /* threads post or signal it, and signals are counted, not holds */
    LT_TRAIT_USES_COUNTED = 4, /* the reader gives the uses of each thread (struct lt_use) */
    LT_TRAIT_EVENT = 8,        /* its waits are for an event, and say nothing about a lock */
    LT_TRAIT_INNER = 16,       /* its waits may be a part of a wait for a composite lock */
    LT_TRAIT_RESERVED = 32,    /* the tables keep room for it, for waits after they are full */
    LT_TRAIT_COMPOSITE = 64,   /* the program makes it of inner kinds: a wait has waits inside */
    LT_TRAIT_HAS_LIVES = 128,  /* its uses are counted anew when the program makes it anew */
    LT_TRAIT_WOKEN = 256       /* who wakes its waiters may have held it, and is charged */
};

/* A row for each kind: its name and its traits. `bit` goes to ROW as it is. */
#define LT_KIND_ROWS(ROW, bit)                                                                     \
    ROW(MUTEX, LT_TRAIT_CONTENTION | LT_TRAIT_RESERVED, bit)                                       \
    ROW(RWLOCK, LT_TRAIT_CONTENTION | LT_TRAIT_RESERVED, bit)                                      \
    ROW(SPIN, LT_TRAIT_CONTENTION | LT_TRAIT_RESERVED, bit)                                        \
    ROW(SEM,                                                                                       \
        LT_TRAIT_SIGNALLED | LT_TRAIT_USES_COUNTED | LT_TRAIT_INNER | LT_TRAIT_RESERVED |          \
            LT_TRAIT_HAS_LIVES | LT_TRAIT_WOKEN,                                                   \
        bit)                                                                                       \
    ROW(COND, LT_TRAIT_SIGNALLED | LT_TRAIT_USES_COUNTED | LT_TRAIT_EVENT | LT_TRAIT_INNER, bit)   \
    ROW(BARRIER, LT_TRAIT_USES_COUNTED | LT_TRAIT_EVENT, bit)                                      \
    ROW(JOIN, LT_TRAIT_EVENT, bit)                                                                 \
    ROW(ONCE, LT_TRAIT_CONTENTION, bit)                                                            \
    ROW(FUTEX, LT_TRAIT_INNER | LT_TRAIT_RESERVED | LT_TRAIT_WOKEN, bit)                           \
    ROW(CUSTOM, LT_TRAIT_CONTENTION | LT_TRAIT_COMPOSITE, bit)

#endif
