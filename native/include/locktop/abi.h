/* The layout of the shared memory of one watched process. The library writes this memory, and the
 * tool reads it.
 *
 * The tool reads this very file through cffi. So it holds nothing but comments, an include guard,
 * enums with plain numbers and structs of fixed-width integers. Everything is in the byte order of
 * the machine; every structure is naturally aligned.
 *
 *   file offset 0      struct lt_header     magic, clock, sizes, offsets of everything else
 *               4096   struct lt_control    the only page that a reader may write
 *               8192   the arena            arrays, tables, rings and stacks, in order of need
 *
 * Every "offset" below is a byte offset from the start of the file; 0 means "none". "ticks" are of
 * the clock that the header names. A "key" is a lock's address with its kind in the top byte
 * (LT_KIND_SHIFT).
 *
 * A thread writes its own block, tables and ring, and no other thread does. Many threads write the
 * fields of struct lt_lock, with atomic operations. A reader copies, checks every offset and count,
 * and trusts nothing. */
#ifndef LOCKTOP_ABI_H
#define LOCKTOP_ABI_H

#include <stdint.h>

#include "locktop/abi_array.h"
#include "locktop/abi_call_sites.h"
#include "locktop/abi_calls.h"
#include "locktop/abi_histograms.h"
#include "locktop/abi_kinds.h"
#include "locktop/abi_long_waits.h"
#include "locktop/abi_orders.h"
#include "locktop/abi_profiles.h"

enum {
    LT_ABI_VERSION = 12,
    LT_BYTE_ORDER = 16909060, /* 0x01020304 as the writer stored it */
    LT_PAGE = 4096,
    LT_CONTROL_OFFSET = 4096,
    LT_ARENA_OFFSET = 8192,
    LT_KIND_SHIFT = 56,
    LT_NAME_MAX = 16,
    LT_HELD_INLINE = 32,
    LT_RECORD_SIZE = 64,
    LT_STACK_MAX = 256,        /* frames that a stack keeps, innermost first */
    LT_STACK_CUT = 0x40000000, /* in the depth of a stack: there were more frames */
    LT_STACK_UNIT = 16,        /* stack id = file offset / LT_STACK_UNIT */
    LT_UNLOADED_BIT = 63,
    LT_WAITS_BITS = 16,
    LT_WAITS_NEW = 32768,
    LT_NAME_TEXT = 112,
    LT_MARK_TEXT = 44
};

enum lt_level {
    LT_LEVEL_DORMANT = 0,   /* hooks call straight through */
    LT_LEVEL_COUNTING = 1,  /* counters and held lists; no stacks, no records */
    LT_LEVEL_CONTENDED = 2, /* the default: also stacks and records of contended waits; of
                               brief ones (account/brief_wait.h) for a sample */
    LT_LEVEL_BLOCKS = 3,    /* also a record of each hold during which another thread waited */
    LT_LEVEL_ALL = 4        /* also a record of every other hold, of every post and signal */
};

enum lt_clock {
    LT_CLOCK_MONOTONIC = 1, /* ticks are nanoseconds of CLOCK_MONOTONIC */
    LT_CLOCK_COUNTER = 2    /* the invariant TSC, or CNTVCT_EL0; see clock0_*, clock_hz */
};

enum lt_process_state { LT_STARTING = 0, LT_RUNNING = 1, LT_EXITED = 2 };

/* lt_header.notes: what went wrong in the target. */
enum lt_note {
    LT_NOTE_NO_ROOM = 1,          /* an allocation failed: details are missing */
    LT_NOTE_NO_THREAD_BLOCK = 2,  /* a thread is not watched */
    LT_NOTE_LOCKS_FOLDED = 4,     /* some counts of a lock are in "other locks" (id 0), or lost */
    LT_NOTE_CONFINED = 8,         /* the program confined itself: no more room than it had then */
    LT_NOTE_NO_CLOCK = 16,        /* the program gave up the clock: the watch ended there */
    LT_NOTE_ORDERS_LEFT_OUT = 32, /* some lock orders are not in lt_header.orders */
    LT_NOTE_CALLS_UNNAMED = 64,   /* LOCKTOP_CALLS_MATCH: no names were found for some functions */
    LT_NOTE_SHORT_RINGS = 128     /* some rings have fewer records than LOCKTOP_RING says */
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
    uint64_t created_real_ns; /* CLOCK_REALTIME when the watch began */
    uint32_t clock;           /* enum lt_clock */
    uint32_t wait_shift;      /* lt_lock.waits counts in units of 2^wait_shift ticks */
    uint64_t clock0_ticks;    /* the same moment on both clocks: a reader that takes */
    uint64_t clock0_ns;       /* a second pair gets the rate (CLOCK_MONOTONIC, ns) */
    uint64_t clock_hz;        /* ticks a second if the hardware states it, else 0 */

    uint64_t used;       /* arena: first byte that was never handed out */
    uint64_t backed;     /* arena: pages below are reserved, but for arrays (lt_array.backed) */
    uint64_t limit;      /* arena: never grows beyond */
    uint64_t refused;    /* refused requests for room */
    uint64_t retire_seq; /* odd while a dead thread's figures move to the locks */

    struct lt_array threads; /* of struct lt_thread */
    struct lt_array locks;   /* of struct lt_lock; element 0 is "other locks", the next ones are
                                reserved for locks that are waited for when there is no room */
    struct lt_array retired; /* of struct lt_retired */

    uint64_t lock_roots;    /* offset of lock_root_count uint32_t: lock ids, see struct lt_lock */
    uint64_t stack_buckets; /* offset of stack_bucket_count uint32_t: first stack id of a chain */
    uint32_t lock_root_count;
    uint32_t stack_bucket_count;
    uint32_t stack_count;
    uint32_t threads_unwatched; /* threads that got no block */
    uint64_t unloads;           /* unloaded libraries whose stacks were flagged */

    struct lt_array names; /* of struct lt_name */
    uint64_t name_buckets; /* offset of name_bucket_count uint32_t: first name + 1 of a chain */
    uint32_t name_bucket_count;
    uint32_t names_changed; /* grows with each change of a name */

    struct lt_array customs; /* of struct lt_custom, which only the library uses */

    struct lt_array misuses;  /* of struct lt_misuse; at most LT_MISUSES */
    uint64_t misuses_changed; /* grows with each misuse, noted or not */
    uint32_t forked_from;     /* pid of the parent; 0: this process executed a program */
    uint32_t misuses_reserved;
    struct lt_array orders;  /* of struct lt_order */
    struct lt_array lives;   /* of struct lt_life */
    uint64_t orders_changed; /* grows with each change of either */

    struct lt_array conditions;    /* of struct lt_condition */
    uint64_t calls_ended;          /* offset of the struct lt_calls of ended threads; 0: none yet */
    struct lt_array profiles;      /* of struct lt_profile; at most LT_PROFILES */
    struct lt_array retired_lines; /* of struct lt_line_sum, of ended threads */
    uint64_t lines_left_out;       /* of ended threads, as in struct lt_histograms */
    struct lt_unloaded_code unloaded;
};

/* The only page that a reader writes. The hooks read `mode`: (epoch << 8) | level. A new epoch
 * begins where a level is or was "dormant". A new epoch makes each thread forget its held list,
 * which may have missed a release. A reader that wants more than `base_level` fills the claim and
 * stores a new mode. The reader renews claim_ticks at least once a second. If the claim is not
 * renewed for LT_CLAIM_SECONDS the library goes back to base_level by itself. */
enum { LT_CLAIM_SECONDS = 5 };

struct lt_control {
    uint32_t mode;
    uint32_t calls;      /* (epoch << 8) | LT_CALLS_ON if function calls are counted */
    uint32_t base_level; /* from LOCKTOP_LEVEL */
    uint32_t claim_pid;  /* the reader's pid, 0 = no claim */
    uint32_t claim_level;
    uint32_t control_reserved;
    uint64_t claim_ticks; /* the target's clock when the reader last renewed the claim */
    /* A reader wants records of the holds for which a thread waited, until then (ticks). */
    uint64_t holds_until;
};

enum { LT_PARENT_POSTS = 16, LT_PARENT_NOT_KNOWN = 0xffff };

/* One lock, for the whole process. A search goes by the hash of the key (lock_hash() in
 * base/lock_key.h) down a tree that only grows. The highest bits of the hash choose a root. If
 * another lock stands there, the next two bits choose one of its children, and so on. */
struct lt_lock {
    uint64_t key;        /* (kind << LT_KIND_SHIFT) | address; 0 while a thread makes the entry */
    uint32_t child[4];   /* lock ids */
    uint32_t generation; /* initialisations of this address after a destroy */
    uint16_t destroyed;  /* 1 between destroy and init; cond: or the next wait */
    union {
        uint16_t cookies; /* with LOCKTOP_ORDER=mark: cookies that the lock was given; 0 none */
        /* sem that a forked child inherited as a lock: posts by threads of the parent. At most
         * LT_PARENT_POSTS; LT_PARENT_NOT_KNOWN; 0: the child has not looked yet */
        uint16_t parent_posts;
    };
    /* mutex: type and flags (its __kind). rwlock: who goes first (its __flags,
     * PTHREAD_RWLOCK_PREFER_*). Both from the first use. custom: index + 1 of its struct lt_custom.
     * sem: its first value + 1, 0 not known. cond: index + 1 of its struct lt_condition, 0 none */
    uint32_t type;
    uint32_t retired; /* index + 1 in lt_header.retired; 0: nothing is counted there yet */
    /* releases by a thread that did not list the lock: a held list that names the lock may be
     * stale. sem: posts in this life by threads that had not got it; each thread counts once */
    uint32_t foreign_releases;
    uint32_t made_at; /* the innermost frames of the stack that initialised it; 0 not known */
    uint64_t sites;   /* offset of the first struct lt_retired_site */
    /* from level "contended" on: n, below the bit LT_WAITS_NEW, is how many threads wait. S is the
     * part above LT_WAITS_BITS. At the moment t, n * t - S is the waited time that no holder is
     * charged with. This time is in units of lt_header.wait_shift, modulo 2^48. See
     * account/blame.h */
    uint64_t waits;
};

/* Exact counters with one writer. Times are ticks. A hold is measured for every contended
 * acquisition and for a sample of the others. The two are kept apart so that scaling is unbiased.
 * The sum is
 *
 *   hold_contended_ticks + hold_sampled_ticks * (acquisitions - hold_contended) / hold_sampled
 *
 * A lock's figures are those in the counters of the living threads plus its struct lt_retired. */
struct lt_counts {
    uint64_t acquisitions; /* successful ones, also of a mutex at the end of a condition wait;
                              cond, join: waits that returned; sem: waits that got it */
    union {
        uint64_t hold_sampled;
        uint64_t signals; /* sem: posts; cond: signals and broadcasts; neither is ever held */
    };
    union {
        uint64_t hold_sampled_ticks;
        uint64_t unheard; /* cond: signals for which no thread waited */
        /* sem: both counts when `life` began, modulo 2^32: signals << 32 | acquisitions */
        uint64_t before;
    };
    union {
        uint64_t hold_max;
        /* sem: the lt_lock.generation of the latest count << 1. The lowest bit is set after a post
         * by a thread that had not got the semaphore in that life */
        uint64_t life;
    };
};

struct lt_waits {
    uint64_t contended; /* acquisitions that had to wait */
    uint64_t trylock_failed;
    uint64_t wait_ticks; /* also of waits that ended without the lock (timeout) */
    uint64_t wait_max;
    uint64_t hold_contended;
    uint64_t hold_contended_ticks;
    union {
        uint64_t timing_at;  /* at levels above "contended": what sample_at, which is 0, would be */
        uint64_t unit_since; /* sem: when a wait gave the thread its only unit; lt_lock_counters */
    };
    uint64_t own; /* the library's own: address of struct lt_lock */
};

/* The figures of a lock's ended threads. Many threads add, with atomic operations, the signals for
 * which they have no counters of their own. */
struct lt_retired {
    uint32_t lock; /* id */
    uint32_t kind; /* enum lt_kind */
    struct lt_counts counts;
    struct lt_waits waits;
    uint32_t lines; /* index + 1 of the first in lt_header.retired_lines; 0 none */
    uint32_t reserved;
};

enum { LT_MISUSES = 256 };

enum lt_misuse_kind {
    LT_MISUSE_NONE = 0,            /* a thread writes the entry */
    LT_MISUSE_RELEASED_OTHERS = 1, /* released by a thread while `other` had the lock */
    LT_MISUSE_RELEASED_FREE = 2,   /* released while no thread had the lock */
    LT_MISUSE_TAKEN_AGAIN = 3,     /* wanted by the thread that has the lock; not recursive */
    LT_MISUSE_ENDED_HELD = 4,      /* destroyed while `other` had the lock; 0: some thread */
    LT_MISUSE_ENDED_WAITED = 5,    /* destroyed while a thread waited */
    LT_MISUSE_TWO_MUTEXES = 6,     /* condition waits with different mutexes at one time */
    LT_MISUSE_KEPT = 7,            /* the thread ended and still had the lock */
    LT_MISUSE_WAITED_UNHELD = 8    /* condition wait with a mutex that the thread has not got */
};

/* A rule of pthreads that the program broke: one entry for each lock and call site. */
struct lt_misuse {
    uint32_t kind; /* enum lt_misuse_kind; written last */
    uint32_t lock; /* id */
    uint32_t stack;
    uint32_t tid;   /* the thread that did so first */
    uint32_t other; /* tid; for LT_MISUSE_TWO_MUTEXES the id of the other mutex */
    uint32_t count;
    uint64_t first; /* ticks */
};

/* The name that the program gives to a lock. `key` is the lock's address, with a kind only if the
 * name is for that kind of lock. `seq` is odd while the text changes; an empty text is no name. */
struct lt_name {
    uint64_t key;
    uint32_t next; /* next name + 1 in the hash chain */
    uint32_t seq;
    uint8_t text[112]; /* LT_NAME_TEXT; ends with a zero */
};

/* The holders of a lock of the program's own, and how often threads took it; only the library uses
 * this. Each word: epoch (upper 16 bits), acquisitions (24), holders (24). */
struct lt_custom {
    uint64_t exclusive;
    uint64_t shared;
    uint64_t padding[6]; /* to a cache line */
};

/* The threads in pthread_cond_wait() for a condition of this process. A signal wakes some thread:
 * `woken` of the `sleepers` no longer sleep. When all are woken a new round begins without them.
 * See account/wakeups.h. */
enum { LT_WAKE_ROUNDS = 4, LT_SLEEPERS_BITS = 20 };

struct lt_condition {
    uint64_t word;        /* round << 2 * LT_SLEEPERS_BITS | woken << LT_SLEEPERS_BITS | sleepers */
    uint64_t signalled;   /* ticks of the last signal that woke a thread, 0 none */
    uint64_t round_at[4]; /* LT_WAKE_ROUNDS of them: ticks when round n began, at n modulo that */
    uint32_t mutex;       /* id of the mutex that the sleepers gave up */
    uint32_t reserved[3]; /* to a cache line */
};

/* The figures of ended threads by lock and stack: a chain at each lock. */
struct lt_retired_site {
    uint64_t next; /* offset */
    uint32_t stack;
    uint32_t blame; /* 1: as in struct lt_site with LT_SITE_BLAME */
    uint64_t count;
    uint64_t wait_ticks;
};

/* One thread's counters for one lock, a cache line each. The table has open addressing and
 * counters_capacity entries (a power of two). The figures that only a lock with waits needs lie
 * apart. */
struct lt_lock_counters {
    uint64_t key;
    uint32_t lock;  /* id */
    uint32_t waits; /* index + 1 in lt_thread.waits; 0 none */
    union {
        uint64_t sample_at; /* the acquisition whose hold is timed next */
        uint64_t lock_at;   /* sem: the library's own: address of struct lt_lock */
        /* futex: ticks when the thread's last wait for the word ended well, if it has not woken
         * the word's waiters since; else 0 */
        uint64_t woken_at;
    };
    struct lt_counts counts;
    union {
        uint64_t own; /* the library's own: address of struct lt_waits */
        /* sem: return address of the call that took the first unit that the thread has not posted.
         * With bits of enum lt_taken_at; 0 not known */
        uint64_t taken_at;
    };
};

enum lt_held_flags {
    LT_HELD_SHARED = 1,    /* a reader of an rwlock */
    LT_HELD_TIMED = 2,     /* `since` is set */
    LT_HELD_CONTENDED = 4, /* after a wait: the wait_* fields are set, and the hold is timed */
    LT_HELD_DEFERRED = 8,  /* events are deferred until its release */
    LT_HELD_RECORDED = 16, /* taken at a level that may record the hold: `waits` is set */
    LT_HELD_MET = 32       /* taken by a reader while a writer waited: `since` is set */
};

/* A lock that the thread holds now. The list is in the order of acquisition. */
struct lt_held {
    uint64_t key;
    uint32_t lock;       /* id; 0 if there was no room for the lock */
    uint16_t depth;      /* recursive acquisitions beyond the first */
    uint16_t flags;      /* enum lt_held_flags */
    uint64_t site;       /* return address of the acquiring call */
    uint64_t since;      /* timed: ticks when taken */
    uint64_t wait_start; /* contended: ticks when the wait began; else the library's own */
    uint64_t wait_ticks; /* contended: duration of the wait */
    uint32_t stack;      /* contended: stack of the wait */
    uint32_t holder;     /* contended: tid of the holder when the wait began, 0 unknown */
    uint64_t waits;      /* recorded: lt_lock.waits when taken */
};

enum lt_wait_flags {
    LT_WAIT_TIMED = 1,  /* ends by itself */
    LT_WAIT_SHARED = 2, /* wants an rwlock for reading */
    LT_WAIT_PSHARED = 4 /* another process may end it */
};

/* The present wait of a thread. `seq` is odd while the fields change, and different for each wait.
 * key 0 = not waiting. join: the address in the key is the pthread_t. */
struct lt_wait {
    uint32_t seq;
    uint32_t flags; /* enum lt_wait_flags */
    uint64_t key;
    uint32_t lock; /* id */
    uint32_t stack;
    uint64_t since;  /* ticks */
    uint64_t site;   /* return address of the waiting call */
    uint32_t holder; /* tid of the holder when the wait began, 0 unknown */
    union {
        uint32_t mutex;   /* cond: id of the mutex that the wait gave up */
        uint32_t parties; /* barrier: how many threads it lets go at once */
    };
};

enum lt_thread_state {
    LT_THREAD_FREE = 0,
    LT_THREAD_LAUNCHING = 1, /* taken by the creator; the thread does not run yet */
    LT_THREAD_LIVE = 2,
    LT_THREAD_EXITING = 3,  /* the start routine ended; destructors may still lock */
    LT_THREAD_RETIRING = 4, /* dead; its figures move to the locks */
    LT_THREAD_KEPT = 5      /* dead; its held list names locks that it never released */
};

/* The library's own: pointers instead of offsets, and the like. They have no meaning outside the
 * target. Each layer of the library has a part, and alone knows what the part holds. */
struct lt_own {
    uint64_t tables[72];   /* struct tables_state; the next two share a cache line */
    uint64_t stack[2];     /* struct stack_state */
    uint64_t account[33];  /* struct account_state */
    uint64_t order[7];     /* struct order_state */
    uint64_t runtime[1];   /* struct free_block */
    uint64_t interpose[2]; /* struct thread_start */
    uint64_t spare;
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
    uint8_t name[16];    /* set through pthread_setname_np, else empty */

    struct lt_wait wait;

    uint64_t held;      /* offset of an array of struct lt_held */
    uint32_t held_size; /* room of the list, bytes */
    uint32_t held_top;  /* used bytes of the list */
    uint64_t held_lost; /* acquisitions that found no room in the list */

    uint64_t counters; /* offset of counters_capacity struct lt_lock_counters */
    uint32_t counters_capacity;
    uint32_t counters_count;
    uint64_t sites; /* offset of site_capacity struct lt_site */
    uint32_t site_capacity;
    uint32_t site_count;
    uint64_t ring; /* offset of ring_capacity records of LT_RECORD_SIZE */
    uint32_t ring_capacity;
    uint32_t table_seq;        /* odd while counters or sites move to a larger table */
    uint64_t ring_head;        /* records ever written; record n lies at index n % ring_capacity */
    uint64_t long_waits;       /* offset of LT_LONG_WAITS struct lt_long_wait */
    uint64_t long_waits_noted; /* entries ever written */
    uint64_t long_waits_dropped; /* entries with is_notable that others took the place of */

    struct lt_array waits; /* of struct lt_waits */

    struct lt_lock_counters other; /* locks that found no room in the tables (lock id 0) */
    struct lt_waits other_waits;

    struct lt_own own;

    uint64_t calls;  /* offset of struct lt_calls, 0 none */
    uint64_t waited; /* ticks in waits for locks that have ended */

    struct lt_held held_inline[32]; /* LT_HELD_INLINE of them */
    struct lt_histograms histograms;
    uint8_t padding[488]; /* to LT_PAGE: see shm/layout.c */
};

/* A call stack, innermost return address first. Its id is its offset / LT_STACK_UNIT. An address in
 * a library that was unloaded since has its highest bit set (LT_UNLOADED_BIT). */
struct lt_stack {
    uint64_t hash;
    uint32_t next;  /* next stack id in the hash chain */
    uint32_t depth; /* frames that follow, and LT_STACK_CUT */
    /* uint64_t frame[depth]; */
};

/* A record of the ring: one msgpack array that fills LT_RECORD_SIZE bytes exactly. A bin at its end
 * pads the array, and every integer has its full width:
 *
 *   9b                          array of 11
 *   tt                          type (enum lt_record)
 *   kk                          kind (enum lt_kind), with LT_KIND_SHARED
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
    LT_RECORD_WAIT = 1,      /* an acquisition or a wait that had to wait */
    LT_RECORD_TIMEOUT = 2,   /* a wait that ended without the lock */
    LT_RECORD_HOLD = 3,      /* an acquisition without a wait; `start` is when it was taken */
    LT_RECORD_MARK = 4,      /* a mark of the user, laid out differently, below */
    LT_RECORD_SIGNAL = 5,    /* a post of a semaphore, or a signal; has tid, lock and start alone */
    LT_RECORD_BROADCAST = 6, /* the same for a broadcast */
    /* A wake of the waiters of a futex, at `start` + `hold`, with its stack. `start` is when the
     * thread's wait for the futex ended; `hold` is 0 if the thread had not waited for it. Or a post
     * of a unit of a semaphore, for which threads waited, by its taker. */
    LT_RECORD_RELEASE = 7
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
