/* The shared memory of one watched process: the layout, once, for the library that
 * writes it and for the tool that reads it.
 *
 * The tool reads this very file through cffi, so it holds nothing but comments, an
 * include guard, enums with plain numbers and structs of fixed-width integers.
 * Everything is in the byte order of the machine; every structure is naturally aligned.
 *
 *   file offset 0      struct lt_header     magic, clock, sizes, where the rest lies
 *               4096   struct lt_control    the only page that a reader may write
 *               8192   the arena            arrays, tables, rings and stacks, in order of need
 *
 * Every "offset" below is a byte offset from the start of the file; 0 means "none".
 * "ticks" are of the clock that the header names; "key" is a lock's address with its
 * kind in the top byte (LT_KIND_SHIFT).
 *
 * Who writes what: a thread block, its tables and its ring are written by the thread
 * that owns them and by nobody else. Fields of struct lt_lock are written by many, with
 * atomic operations. A reader copies, checks every offset and count, and trusts nothing.
 */
#ifndef LOCKTOP_ABI_H
#define LOCKTOP_ABI_H

#include <stdint.h>

enum {
    LT_ABI_VERSION = 7,
    LT_BYTE_ORDER = 16909060, /* 0x01020304 as the writer stored it */
    LT_PAGE = 4096,
    LT_CONTROL_OFFSET = 4096,
    LT_ARENA_OFFSET = 8192,
    LT_KIND_SHIFT = 56,
    LT_CHUNKS = 26,
    LT_NAME_MAX = 16,
    LT_HELD_INLINE = 32,
    LT_RECORD_SIZE = 64,
    LT_STACK_MAX = 256,        /* frames kept of one stack, innermost first */
    LT_STACK_CUT = 0x40000000, /* in its depth: there were more frames */
    LT_STACK_UNIT = 16,        /* stack id = file offset / LT_STACK_UNIT */
    LT_UNLOADED_BIT = 63,
    LT_WAITS_BITS = 16,
    LT_NAME_TEXT = 112,
    LT_MARK_TEXT = 44
};

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
    LT_KIND_CUSTOM = 10
};

enum lt_level {
    LT_LEVEL_DORMANT = 0,   /* hooks call straight through */
    LT_LEVEL_COUNTING = 1,  /* counters and held lists; no stacks, no records */
    LT_LEVEL_CONTENDED = 2, /* the default: also stacks and records of contended waits */
    LT_LEVEL_BLOCKS = 3,    /* also a record of each hold during which somebody else waited */
    LT_LEVEL_ALL = 4        /* also a record of every other hold */
};

enum lt_clock {
    LT_CLOCK_MONOTONIC = 1, /* ticks are nanoseconds of CLOCK_MONOTONIC */
    LT_CLOCK_COUNTER = 2    /* the invariant TSC, or CNTVCT_EL0; see clock0_*, clock_hz */
};

enum lt_process_state { LT_STARTING = 0, LT_RUNNING = 1, LT_EXITED = 2 };

/* lt_header.notes: what went wrong in the target, for the tool to tell. */
enum lt_note {
    LT_NOTE_NO_ROOM = 1,         /* an allocation failed: details are missing */
    LT_NOTE_NO_THREAD_BLOCK = 2, /* a thread runs unwatched */
    LT_NOTE_LOCKS_FOLDED = 4,    /* acquisitions were counted under "other locks" (id 0), posts and
                                    signals not at all: those of a lock are at least what is
                                    counted of it */
    LT_NOTE_CONFINED = 8,        /* the program confined itself: no room beyond what it had then */
    LT_NOTE_NO_CLOCK = 16        /* it gave up the clock: watching ended there */
};

/* An array that grows without moving: chunk k holds (first << k) elements, so element i
 * lies in chunk c = floor(log2(i / first + 1)), at index i - first * (2^c - 1).
 * An element below `count` may still be zero: it is being built. */
struct lt_array {
    uint32_t count;        /* elements handed out */
    uint32_t element_size; /* bytes */
    uint32_t first;        /* elements in chunk 0 */
    uint32_t backed;       /* elements whose pages are reserved */
    uint64_t chunk[26];    /* offsets; LT_CHUNKS of them */
};

struct lt_header {
    uint8_t magic[8]; /* "locktop\0" */
    uint32_t version; /* LT_ABI_VERSION */
    uint32_t byte_order;
    uint32_t word_bits;
    uint32_t header_size; /* sizeof(struct lt_header) */
    uint32_t state;       /* enum lt_process_state */
    uint32_t notes;       /* bits of enum lt_note */
    uint32_t pid;         /* in its own pid namespace */
    uint32_t uid;
    uint64_t start_time;      /* field 22 of /proc/PID/stat, clock ticks since boot */
    uint64_t pid_namespace;   /* inode of /proc/self/ns/pid, 0 if unknown */
    uint64_t created_real_ns; /* CLOCK_REALTIME when watching began */
    uint32_t clock;           /* enum lt_clock */
    uint32_t wait_shift;      /* lt_lock.waits counts in units of 2^wait_shift ticks */
    uint64_t clock0_ticks;    /* the same moment on both clocks: a reader that takes */
    uint64_t clock0_ns;       /* a second pair gets the rate (CLOCK_MONOTONIC, ns) */
    uint64_t clock_hz;        /* ticks a second where the hardware says it, else 0 */

    uint64_t used;       /* arena: first byte never handed out */
    uint64_t backed;     /* arena: pages below this are reserved and safe to touch, but for those
                            of the arrays (lt_array.backed) */
    uint64_t limit;      /* arena: never grows beyond */
    uint64_t refused;    /* allocations refused for want of room */
    uint64_t retire_seq; /* odd while a dead thread's figures move to the locks */

    struct lt_array threads; /* of struct lt_thread */
    struct lt_array locks;   /* of struct lt_lock; element 0 is "other locks", and the next ones
                                are kept for locks that are waited for when there is no room */
    struct lt_array retired; /* of struct lt_retired */

    uint64_t lock_roots;    /* offset of lock_root_count uint32_t: lock ids, see struct lt_lock */
    uint64_t stack_buckets; /* offset of stack_bucket_count uint32_t: first stack id of a chain */
    uint32_t lock_root_count;
    uint32_t stack_bucket_count;
    uint32_t stack_count;
    uint32_t threads_unwatched; /* threads for which no block could be had */
    uint64_t unloads;           /* libraries whose code was marked as gone */

    struct lt_array names; /* of struct lt_name */
    uint64_t name_buckets; /* offset of name_bucket_count uint32_t: first name + 1 of a chain */
    uint32_t name_bucket_count;
    uint32_t names_changed; /* grows with each change of a name */

    struct lt_array customs; /* of struct lt_custom: the library's own */

    struct lt_array misuses;  /* of struct lt_misuse; at most LT_MISUSES */
    uint64_t misuses_changed; /* grows with each misuse that was seen, noted or not */
    uint32_t forked_from; /* pid of the process that forked this one, 0: it executed a program */
    uint32_t misuses_reserved;
    struct lt_array orders;  /* of struct lt_order */
    struct lt_array lives;   /* of struct lt_life */
    uint64_t orders_changed; /* grows with each change of either */
};

/* The only page a reader writes. `mode` is what the hooks look at:
 * (epoch << 8) | level. A new epoch, which begins where a level is or was "dormant", makes
 * each thread forget its held list, which may have missed a release. A reader that wants more than `base_level` fills the claim,
 * renews claim_ticks at least once a second, and stores a new mode; when the claim is
 * not renewed for LT_CLAIM_SECONDS the library goes back to base_level by itself. */
enum { LT_CLAIM_SECONDS = 5 };

struct lt_control {
    uint32_t mode;
    uint32_t base_level; /* from LOCKTOP_LEVEL */
    uint32_t claim_pid;  /* reader's pid, 0 = no claim */
    uint32_t claim_level;
    uint64_t claim_ticks; /* the target's clock when the claim was last renewed */
};

/* One lock, for the whole process. The locks are found by the hash of their keys (lock_hash() in
 * locks.h), in a tree that only grows: the hash's highest bits choose a root, and where another lock
 * stands already, the next two bits choose one of its children. */
struct lt_lock {
    uint64_t key;        /* (kind << LT_KIND_SHIFT) | address; 0 while being built */
    uint32_t child[4];   /* lock ids */
    uint32_t generation; /* times this address was initialised again after a destroy */
    uint16_t destroyed;  /* 1 between destroy and init */
    uint16_t marked;     /* with LOCKTOP_ORDER=mark: times that it was given a mark; 0 never */
    uint32_t type;       /* mutex: type and flags (its __kind); rwlock: who goes first (its
                            __flags, PTHREAD_RWLOCK_PREFER_*); when first met. custom: index + 1
                            of its struct lt_custom. sem: its first value + 1, 0 not known */
    uint32_t retired; /* its index in lt_header.retired, plus 1; 0: nothing is counted there yet */
    uint32_t foreign_releases; /* releases by a thread that did not list it as held: a held
                                  list that names this lock may be stale. sem: threads that once
                                  posted it as lt_counts.unheld says */
    uint32_t made_at;          /* a stack of one frame, where it was initialised; 0 not known */
    uint64_t sites;            /* offset of the first struct lt_retired_site */
    uint64_t waits; /* from level "contended" on: how many wait (n, the lowest LT_WAITS_BITS)
                                  and S, the rest: what they have waited that no holder is charged with is
                                  n * t - S at the moment t, in units (lt_header.wait_shift) modulo 2^48 */
};

/* Exact counters; one writer. Times in ticks. A hold is measured for every contended
 * acquisition and for a sample of the others, kept apart so that scaling is unbiased:
 *   hold = hold_contended_ticks
 *        + hold_sampled_ticks * (acquisitions - hold_contended) / hold_sampled
 *
 * A lock's figures are those in the slots of the living threads plus its struct lt_retired. The two
 * structs together are what a thread counts of a lock. */
struct lt_counts {
    uint64_t acquisitions; /* successful ones, a mutex taken again by a condition wait too;
                              cond and join: waits that returned; sem: waits that got it */
    union {
        uint64_t hold_sampled;
        uint64_t signals; /* sem: posts; cond: signals and broadcasts; neither is ever held */
    };
    union {
        uint64_t hold_sampled_ticks;
        uint64_t unheard; /* cond: of the signals, those for which nobody waited */
    };
    union {
        uint64_t hold_max;
        uint64_t unheld; /* sem: 1 once it was posted by a thread that had posted it as often as it
                            had got it */
    };
};

struct lt_waits {
    uint64_t contended; /* acquisitions that had to wait */
    uint64_t trylock_failed;
    uint64_t wait_ticks; /* also of waits that ended without the lock (timeout) */
    uint64_t wait_max;
    uint64_t hold_contended;
    uint64_t hold_contended_ticks;
    uint64_t timing_at; /* at levels above "contended", where lt_slot.sample_at is 0: what it would
                           be */
    uint64_t own;       /* the library's own: where struct lt_lock lies */
};

/* The figures of a lock's threads that ended; and, added by many, the posts and signals for which
 * the thread had no place of its own. */
struct lt_retired {
    uint32_t lock; /* id */
    uint32_t kind; /* enum lt_kind */
    struct lt_counts counts;
    struct lt_waits waits;
};

enum { LT_MISUSES = 256 };

enum lt_misuse_kind {
    LT_MISUSE_NONE = 0,            /* being written */
    LT_MISUSE_RELEASED_OTHERS = 1, /* given back by a thread while `other` had it */
    LT_MISUSE_RELEASED_FREE = 2,   /* given back while nobody had it */
    LT_MISUSE_TAKEN_AGAIN = 3,     /* asked for by the thread that has it, and is not recursive */
    LT_MISUSE_ENDED_HELD = 4,      /* destroyed while `other` had it; 0: somebody */
    LT_MISUSE_ENDED_WAITED = 5,    /* destroyed while it was waited for */
    LT_MISUSE_TWO_MUTEXES = 6,     /* waits for a condition with different mutexes at one time */
    LT_MISUSE_KEPT = 7             /* the thread ended and still had it */
};

/* A rule of pthreads that the program broke: one entry for each lock and place. */
struct lt_misuse {
    uint32_t kind; /* enum lt_misuse_kind; written last */
    uint32_t lock; /* id */
    uint32_t stack;
    uint32_t tid;   /* who did it first */
    uint32_t other; /* tid; for LT_MISUSE_TWO_MUTEXES the id of the other mutex */
    uint32_t count;
    uint64_t first; /* ticks */
};

/* What the program calls a lock: `key` is its address, with its kind only where the name is of one
 * kind of lock. `seq` is odd while the text changes; an empty text is no name. */
struct lt_name {
    uint64_t key;
    uint32_t next; /* next name + 1 in the hash chain */
    uint32_t seq;
    uint8_t text[112]; /* LT_NAME_TEXT; ends with a zero */
};

/* Who has a lock of the program's own now, and how often it was taken: the library's own. Each word:
 * epoch (upper 16 bits), acquisitions (24), holders (24). */
struct lt_custom {
    uint64_t exclusive;
    uint64_t shared;
    uint64_t padding[6]; /* to a cache line */
};

/* The figures of ended threads by lock and stack: a chain at each lock. */
struct lt_retired_site {
    uint64_t next; /* offset */
    uint32_t stack;
    uint32_t blame; /* 1: as in struct lt_site with LT_SITE_BLAME */
    uint64_t count;
    uint64_t wait_ticks;
};

/* One thread's figures for one lock: open addressing in a table of slot_capacity (a power
 * of two), a cache line each. key 0 = empty. What only a lock that was waited for needs lies apart. */
struct lt_slot {
    uint64_t key;
    uint32_t lock;      /* id */
    uint32_t waits;     /* its index in lt_thread.waits, plus 1; 0 none */
    uint64_t sample_at; /* the acquisition whose hold is timed next */
    struct lt_counts counts;
    uint64_t own; /* the library's own: where struct lt_waits lies */
};

enum { LT_SITE_BLAME = 0x40000000 };

/* One thread's waits for one lock with one stack: open addressing, count 0 = empty. With LT_SITE_BLAME
 * in the lock's id: what other threads waited for the lock while this one held it. Then the stack is one
 * frame, where it was taken; or two, the second one the id of a lock: so long this one waited for that. */
struct lt_site {
    uint32_t lock;
    uint32_t stack;
    uint64_t count;
    uint64_t wait_ticks;
    uint64_t wait_max;
};

enum lt_held_flags {
    LT_HELD_SHARED = 1,    /* a reader of an rwlock */
    LT_HELD_TIMED = 2,     /* `since` is set */
    LT_HELD_CONTENDED = 4, /* had to wait for it: the wait_* fields are set, and it is timed */
    LT_HELD_DEFERRED = 8,  /* records wait to be written after its release */
    LT_HELD_RECORDED = 16, /* taken at a level that may record the hold: `waits` is set */
    LT_HELD_MET = 32       /* by a reader while a writer waited: `since` is set */
};

/* A lock that the thread holds now, in the order of acquisition. */
struct lt_held {
    uint64_t key;
    uint32_t lock;       /* id; 0 if there was no room for the lock when it was taken */
    uint16_t depth;      /* recursive acquisitions beyond the first */
    uint16_t flags;      /* enum lt_held_flags */
    uint64_t site;       /* return address of the acquiring call */
    uint64_t since;      /* timed: ticks when taken */
    uint64_t wait_start; /* contended: ticks when the wait began; else the library's own */
    uint64_t wait_ticks; /* contended: how long it was */
    uint32_t stack;      /* contended: stack of the wait */
    uint32_t holder;     /* contended: tid that held it when the wait began, 0 unknown */
    uint64_t waits;      /* recorded: lt_lock.waits when taken */
};

enum lt_wait_flags {
    LT_WAIT_TIMED = 1,  /* gives up by itself */
    LT_WAIT_SHARED = 2, /* wants an rwlock for reading */
    LT_WAIT_PSHARED = 4 /* another process may end it */
};

/* What a thread waits for now. `seq` is odd while the fields change and different for
 * each wait; key 0 = not waiting. join: the address in the key is the pthread_t. */
struct lt_wait {
    uint32_t seq;
    uint32_t flags; /* enum lt_wait_flags */
    uint64_t key;
    uint32_t lock; /* id */
    uint32_t stack;
    uint64_t since;  /* ticks */
    uint64_t site;   /* return address of the waiting call */
    uint32_t holder; /* tid that held it when the wait began, 0 unknown */
    union {
        uint32_t mutex;   /* cond: id of the mutex that was given up */
        uint32_t parties; /* barrier: how many it lets go at once */
    };
};

enum lt_thread_state {
    LT_THREAD_FREE = 0,
    LT_THREAD_LAUNCHING = 1, /* block taken by the creator, thread not yet running */
    LT_THREAD_LIVE = 2,
    LT_THREAD_EXITING = 3, /* its start routine ended; destructors may still lock */
    LT_THREAD_RETIRING = 4 /* dead; its figures are moving to the locks */
};

struct lt_thread {
    uint32_t state; /* enum lt_thread_state */
    uint32_t tid;
    uint64_t birth;      /* grows with every thread registered in the process */
    uint64_t pthread;    /* pthread_self() */
    uint64_t started;    /* ticks */
    uint64_t start;      /* start routine, 0 unknown */
    uint64_t created_at; /* return address of pthread_create */
    uint32_t creator;    /* tid of the creating thread, 0 unknown */
    uint32_t mode;       /* the lt_control.mode that its held list belongs to */
    uint8_t name[16];    /* as set through pthread_setname_np, else empty */

    struct lt_wait wait;

    uint64_t held;      /* offset of an array of struct lt_held */
    uint32_t held_size; /* its room, bytes */
    uint32_t held_top;  /* of it in use, bytes */
    uint64_t held_lost; /* acquisitions that found no room in the list */

    uint64_t slots; /* offset of slot_capacity struct lt_slot */
    uint32_t slot_capacity;
    uint32_t slot_count;
    uint64_t sites; /* offset of site_capacity struct lt_site */
    uint32_t site_capacity;
    uint32_t site_count;
    uint64_t ring; /* offset of ring_capacity records of LT_RECORD_SIZE */
    uint32_t ring_capacity;
    uint32_t table_seq; /* odd while slots or sites move to a larger table */
    uint64_t ring_head; /* records ever written; record n lies in slot n % ring_capacity */

    struct lt_array waits; /* of struct lt_waits */

    struct lt_slot other; /* what found no room in the tables (lock id 0) */
    struct lt_waits other_waits;

    uint64_t own[123]; /* the library's own, meaningless outside the target */

    struct lt_held held_inline[32]; /* LT_HELD_INLINE of them */
    uint8_t padding[512];           /* to LT_PAGE: see layout.c */
};

/* A call stack, innermost return address first. Its id is its offset / LT_STACK_UNIT. An address in
 * a library that was unloaded since has its highest bit set (LT_UNLOADED_BIT). */
struct lt_stack {
    uint64_t hash;
    uint32_t next;  /* next stack id in the hash chain */
    uint32_t depth; /* frames that follow, and LT_STACK_CUT */
    /* uint64_t frame[depth]; */
};

enum {
    LT_ORDER_HELD = 8, /* locks of one struct lt_order */
    LT_ORDER_SEEN = 11 /* threads of one */
};

enum lt_order_flags {
    /* 1 << n: held[n] was held for reading */
    LT_ORDER_SHARED = 1 << 8, /* and the lock was wanted for reading */
    LT_ORDER_CUT = 1 << 9,    /* more were held than are named, which are the ones taken last */
    /* LT_ORDER_KNOWN << n: held[n] is known by its mark (mark.h): while it lives no other lock has its
     * id and life; LT_ORDER_KNOWN << LT_ORDER_HELD: so is the lock */
    LT_ORDER_KNOWN = 1 << 16
};

/* A lock was asked for, in a way that may wait without end, while others were held. One entry for
 * each set of these locks, whoever held them. A lock's "life" is made of its generation,
 * destroyed and marked (struct lt_lock): another one, another lock. */
struct lt_order {
    uint64_t hash;  /* of epoch to held_life; 0: no entry (yet) */
    uint32_t next;  /* next order + 1 in the hash chain */
    uint32_t stack; /* of the first who did so, 0 unknown */
    uint32_t epoch; /* of the mode, see struct lt_control: in another one, joins may have been
                            missed in between */
    uint32_t lock;  /* id of the one asked for */
    uint32_t life;  /* its life then */
    uint32_t flags; /* enum lt_order_flags */
    uint32_t held_count;
    uint32_t reserved;
    uint32_t held[8];      /* ids, in the order in which they had been taken */
    uint32_t held_life[8]; /* their lives then */
    uint64_t site[8];      /* where each had been taken: return address */
    uint64_t seen[11];     /* who did so: (birth << 32) | segment, see struct lt_life; 0 none. The
                              first ones and the latest */
};

/* What is known of a thread's beginning and end, of threads that took locks while they held others,
 * and of all by whom they were created. A thread's life is a row of segments, counted from 0: each
 * thread that it creates or joins begins a new one. */
struct lt_life {
    uint64_t pthread;
    uint32_t birth; /* lt_thread.birth; 0: no entry yet */
    uint32_t tid;
    uint32_t creator;    /* that one's birth, 0 unknown */
    uint32_t created_in; /* the creator's segment that ended with it */
    uint32_t joiner;     /* that one's birth, 0: not joined yet */
    uint32_t joined_in;  /* the joiner's segment that began with it */
    uint32_t next;       /* the next life + 1 in a hash chain */
    uint32_t reserved;
};

/* A record of the ring: one msgpack array that fills LT_RECORD_SIZE bytes exactly,
 * padded by a bin at its end, every integer in its full width:
 *
 *   9b                          array of 11
 *   tt                          type (enum lt_record)
 *   kk                          kind (enum lt_kind)
 *   ce .. tid                   u32
 *   ce .. lock                  u32 id
 *   ce .. stack                 u32 id
 *   ce .. holder                u32 tid when the wait began, 0 unknown
 *   cf .. start                 u64 ticks, when the wait began
 *   cf .. wait                  u64 ticks
 *   cf .. hold                  u64 ticks held after that wait, 0 for waits that hold nothing
 *   cf .. site                  u64 return address of the acquiring call
 *   c4 03 00 00 00              padding
 *
 * 1 + 1 + 1 + 4*5 + 4*9 + 5 = 64. */
enum lt_record {
    LT_RECORD_WAIT = 1,    /* an acquisition or a wait that had to wait */
    LT_RECORD_TIMEOUT = 2, /* a wait that ended without the lock */
    LT_RECORD_HOLD = 3,    /* an acquisition without a wait; `start` is when it was taken */
    LT_RECORD_MARK = 4     /* the program's own, laid out differently, below */
};

/* LT_RECORD_MARK:
 *
 *   95                          array of 5
 *   04                          LT_RECORD_MARK
 *   ce .. tid                   u32
 *   cf .. start                 u64 ticks
 *   d9 2c .. text               str of LT_MARK_TEXT bytes, filled up with zeros
 *   c4 00                       padding
 *
 * 1 + 1 + 5 + 9 + 46 + 2 = 64. */

#endif
