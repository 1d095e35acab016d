/* What the tool does in C: folding the tables of a watched process into sums, counting events.
 *
 * Every function works on private copies that the caller owns (one makes them itself, with
 * pread), checks every count, kind and id against the sizes it was given, and trusts nothing
 * that it reads there. None allocates or keeps state of its own, so they may run without Python's lock.
 *
 * Like abi.h this file is read by cffi after its '#' lines are taken out: nothing but
 * comments, structs, enums with plain numbers and prototypes.
 */
#ifndef LOCKTOP_READER_H
#define LOCKTOP_READER_H

#include <stdint.h>

#include "locktop/abi.h"

enum { LT_KINDS = 16 }; /* room for every kind that a key can name and we know */

/* One lock's figures, summed over threads. Ticks, as in struct lt_counts. */
struct lt_lock_sum {
    uint64_t acquisitions;
    uint64_t contended;
    uint64_t trylock_failed;
    uint64_t signals;
    uint64_t unheard;
    uint64_t wait_ticks;
    uint64_t wait_max;
    uint64_t hold_sampled;
    uint64_t hold_sampled_ticks;
    uint64_t hold_contended;
    uint64_t hold_contended_ticks;
    uint64_t hold_max;
    uint64_t hold_scaled_ticks; /* sampled holds scaled up, each thread by its own sample */
    uint64_t hold_unscaled;     /* uncontended acquisitions of threads that timed none */
};

/* What a thread did at a lock that nobody owns: a semaphore, a condition, a barrier. */
struct lt_use {
    uint32_t lock; /* id */
    uint32_t kind; /* enum lt_kind */
    uint64_t acquisitions;
    uint64_t signals; /* barrier: none */
};

enum { LT_USES = 1024 }; /* of one thread that are told */

/* One thread's figures by kind of lock. */
struct lt_thread_sum {
    uint64_t acquisitions[16]; /* LT_KINDS of them */
    uint64_t contended[16];
    uint64_t wait_ticks[16];
    uint32_t use_count;       /* of those below; larger than LT_USES: the others are not told */
    struct lt_use uses[1024]; /* LT_USES */
};

/* The waits for one lock with one stack, of all threads; or, with `blame` 1, what was waited for a lock
 * that the thread `holder` had taken at `stack`, which is one frame (struct lt_site). */
struct lt_site_sum {
    uint32_t lock;
    uint32_t stack;
    uint32_t holder; /* tid; 0 for threads that ended */
    uint32_t blame;
    uint64_t count; /* 0: empty */
    uint64_t wait_ticks;
    uint64_t wait_max;
};

/* One lock as it is handed to Python. `changed_*` is the part since the look before. */
struct lt_lock_row {
    uint32_t lock; /* id */
    uint32_t kind;
    uint64_t address;
    uint32_t generation;
    uint32_t destroyed;
    uint32_t type;
    uint32_t foreign_releases;
    uint32_t made_at;
    uint32_t unused;
    uint64_t sites; /* offset of the first struct lt_retired_site */
    uint64_t waits; /* as in struct lt_lock */
    uint64_t acquisitions;
    uint64_t contended;
    uint64_t trylock_failed;
    uint64_t signals;
    uint64_t unheard;
    uint64_t wait_ticks;
    uint64_t wait_max;
    uint64_t hold_ticks; /* measured and estimated together */
    uint64_t hold_timed;
    uint64_t hold_max;
    uint64_t hold_mean; /* of the sampled holds, 0 unknown */
    uint64_t changed_acquisitions;
    uint64_t changed_contended;
    uint64_t changed_signals;
    uint64_t changed_wait_ticks;
    uint64_t changed_hold_ticks;
};

/* The current reading of the target's clock, or of CLOCK_MONOTONIC where this machine
 * does not know that clock. */
uint64_t lt_reader_ticks(uint32_t clock);

/* The same moment on the target's clock and on CLOCK_MONOTONIC. Returns how far apart, in
 * nanoseconds, the two readings may be. */
uint64_t lt_reader_clock_pair(uint32_t clock, uint64_t *ticks, uint64_t *ns);

/* Adds the slots in `size` bytes, with their `wait_count` struct lt_waits, to `sums` (by lock id) and
 * to `thread`. Returns the number of slots left out because their lock or their kind cannot be. */
uint32_t lt_fold_slots(const void *slots, uint64_t size, const void *waits, uint32_t wait_count,
                       struct lt_lock_sum *sums, uint32_t sum_count, struct lt_thread_sum *thread);

/* Adds what a thread counts as "other locks". */
void lt_fold_other(const struct lt_thread *block, struct lt_lock_sum *sums, uint32_t sum_count,
                   struct lt_thread_sum *thread);

/* Adds the figures in `size` bytes of struct lt_retired. Returns how many were left
 * out because their lock cannot be. */
uint32_t lt_fold_retired(const void *retired, uint64_t size, struct lt_lock_sum *sums,
                         uint32_t sum_count);

/* Returns how many of the mutexes and rwlocks in `size` bytes of struct lt_lock were released by a
 * thread that had not taken them. */
uint32_t lt_count_handed_over(const void *locks, uint64_t size);

/* Adds the sites of the thread `tid`, in `size` bytes, to an open-addressing table of `capacity` (a
 * power of two). Returns 1, or 0 without having added anything when the table might get too full. */
int lt_fold_sites(const void *sites, uint64_t size, uint32_t tid, struct lt_site_sum *table,
                  uint32_t capacity, uint32_t *used);

/* The same of what is summed up already. */
int lt_fold_site_sums(const struct lt_site_sum *sums, uint32_t count, struct lt_site_sum *table,
                      uint32_t capacity, uint32_t *used);

/* Moves the table's entries to its front, by lock and then by most wait. Returns their number. */
uint32_t lt_sort_sites(struct lt_site_sum *table, uint32_t capacity);

enum lt_read_result {
    LT_READ_DONE = 0,
    LT_READ_GONE = 1,         /* no thread has this block, or it ended meanwhile */
    LT_READ_DAMAGED = 2,      /* its tables lie outside the file or cannot be so large */
    LT_READ_MORE_SCRATCH = 3, /* scratch_needed bytes; nothing was added: call again */
    LT_READ_MORE_SITES = 4,   /* a larger table of sites; nothing was added: call again */
    LT_READ_CHANGED = 5       /* it is another one, or did something since it was read before */
};

/* What reading a thread needs and gives. The caller sets the first part once a cycle. */
struct lt_thread_read {
    int32_t fd;
    uint32_t clock;     /* enum lt_clock */
    uint64_t long_wait; /* ticks: a longer wait that ends meanwhile makes it read again */
    uint8_t *scratch;
    uint64_t scratch_size;
    uint64_t scratch_most; /* bytes: larger tables cannot be */
    struct lt_lock_sum *sums;
    struct lt_site_sum *sites; /* as for lt_fold_sites */
    uint32_t sum_count;
    uint32_t site_capacity;
    uint32_t site_used;
    uint32_t refused; /* slots left out so far */
    uint32_t next;    /* index of the thread to read */

    uint64_t scratch_needed;
    uint64_t now;             /* ticks when it was read */
    struct lt_thread_sum sum; /* of its tables */
    struct lt_thread block;   /* newer than the caller's copy; what it waits for and what it lists
                                 as held are of one moment */
};

/* What one reading said of a thread. */
struct lt_thread_seen {
    uint64_t size; /* bytes of `data`; 0: nothing is known, or it does not fit */
    uint64_t data[255];
};

/* Reads threads: copies the tables of each with pread, checks that they belonged together, and adds them
 * to the sums. `blocks` are copies of their blocks, `offsets` where these lie in the file. Begins with the thread
 * `read->next`, which the caller sets to 0 at first, and returns
 *
 *   LT_READ_DONE     behind the last one
 *   LT_READ_CHANGED  behind one of which something is not as `seen` has it, by index, from the reading
 *                    before: `read` has it
 *   LT_READ_MORE_*   at one that needs more room
 *   LT_READ_DAMAGED  at one whose tables are not where they should be
 *
 * Called again it goes on from there. `now` gets when each was read, ticks, 0 where there is none any more. */
int lt_read_threads(struct lt_thread_read *read, const void *blocks, const uint64_t *offsets,
                    uint32_t count, struct lt_thread_seen *seen, uint64_t *now);

/* Writes at most `capacity` rows: first the locks marked in `wanted`, then those that were
 * waited for, then the others, each by how much they were used. `locks` holds the `count`
 * struct lt_lock; `before` the sums of the look before (`before_count` of them, 0 for none).
 * Returns the number of rows; `left_out` gets the number of locks in use that found no room. */
uint32_t lt_pick_locks(const void *locks, uint32_t count, const struct lt_lock_sum *sums,
                       const struct lt_lock_sum *before, uint32_t before_count,
                       const uint8_t *wanted, struct lt_lock_row *rows, uint32_t capacity,
                       uint32_t *left_out);

/* What is known of a task. */
enum lt_task_known {
    LT_TASK_THERE = 1,  /* its stat line, without which nothing is */
    LT_TASK_SCHED = 2,  /* its schedstat */
    LT_TASK_DISK = 4,   /* a stat line long enough for disk_ticks */
    LT_TASK_ASLEEP = 8, /* it sleeps, and all else is of the same moment */
    LT_TASK_SLEPT = 16  /* it has been on no processor since it was sampled before */
};

/* One thread as the kernel shows it (proc_pid_stat(5), and sched-stats.rst of the kernel). */
struct lt_task {
    uint64_t at_ns; /* when it was read, on CLOCK_MONOTONIC */
    uint64_t cpu_ticks;
    uint64_t disk_ticks; /* waited for block devices */
    uint64_t ran_ns;
    uint64_t queued_ns;
    uint64_t runs;
    uint32_t known; /* lt_task_known */
    uint32_t name_size;
    uint32_t call_size;
    uint8_t state; /* letter */
    uint8_t name[71];
    uint8_t call[192]; /* what its syscall file says; call_size is 0 where it was not asked for */
};

/* A thread's place in a table: its id, 0 for an empty place, and the descriptors that are kept open for
 * it, each -1 for none. */
struct lt_task_files {
    int32_t tid;
    int32_t stat;
    int32_t schedstat;
    int32_t syscall;
};

/* The threads of one process. The caller owns the arrays, which have `count` places. */
struct lt_task_table {
    int32_t directory; /* /proc/PID/task, open */
    uint32_t count;
    uint32_t kept; /* descriptors */
    uint32_t most; /* of these */
    struct lt_task_files *files;
    struct lt_task *tasks;
};

/* Fills an empty place. */
void lt_add_task(struct lt_task_table *table, uint32_t place, int32_t tid);

/* Empties a place. */
void lt_forget_task(struct lt_task_table *table, uint32_t place);

/* Reads the schedstat and the stat of the threads at `places`, and with `calls` the syscall file. That a
 * thread sleeps (LT_TASK_ASLEEP) is certain only if lt_still_sleeps() says so afterwards. Returns 0, or the
 * negative errno of what tells nothing about a thread: what we lack (descriptors, memory), and -EPERM and
 * -EACCES where a thread's call may not be seen. A lack is told only after all descriptors that were kept
 * have been given back. */
int lt_read_tasks(struct lt_task_table *table, const uint32_t *places, uint32_t count, int calls);

/* Reads the schedstat of all threads, and the rest of those that did not sleep all the time since the
 * sample before; every so many a `round` also of those that did, for they may be called otherwise by now.
 * Writes the places of all that were read, and of those that ended (without LT_TASK_THERE), to `read`,
 * which has room for all. Returns their number; or the negative errno, as above, or -EPERM and -EACCES
 * where a thread's call may not be seen: then nothing in the table counts. */
int lt_sample_tasks(struct lt_task_table *table, uint32_t round, uint32_t *read);

/* Returns whether a thread slept when it was read or sampled, and has been on no processor since. */
int lt_still_sleeps(struct lt_task_table *table, uint32_t place);

/* Leaves at the beginning of `places` those of which lt_still_sleeps() is true, and returns their number. */
uint32_t lt_pick_asleep(struct lt_task_table *table, uint32_t *places, uint32_t count);

/* What a counter shows, and for how long the thread ran meanwhile (perf_event_open(2)). Where there are
 * fewer counters than were asked for they take turns, and `running_ns` is less than `enabled_ns`. */
struct lt_count {
    uint64_t value;
    uint64_t enabled_ns;
    uint64_t running_ns;
};

/* Counts an event of one thread, given by its type and config as in struct perf_event_attr; with
 * `user_only` not what the kernel does for it. Returns a descriptor, or the negative errno. */
int lt_open_counter(uint32_t type, uint64_t config, int32_t tid, int user_only);

/* Returns 0 where nothing can be read. */
int lt_read_counter(int fd, struct lt_count *count);

enum { LT_SAMPLE_STACK = 32768 }; /* bytes of a stack that a sample copies */

/* What a thread had at one moment while it ran. */
struct lt_sample {
    uint64_t registers[64]; /* by their numbers in asm/perf_regs.h, those that were asked for */
    uint32_t stack_size;    /* bytes */
    uint8_t stack[32768];   /* LT_SAMPLE_STACK: from the stack pointer on */
};

/* Makes ready to sample a thread each `period_ns` of its processor time, with the `registers` (a bit for
 * each number), `user_only` not while the kernel works for it. Returns a descriptor, of which a page
 * and a ring are to be mapped, or the negative errno. */
int lt_open_sampler(int32_t tid, uint64_t period_ns, uint64_t registers, int user_only);

/* Takes one sample, the next time that the thread runs, and no other: poll(2) tells when. Returns 0 or
 * the negative errno. */
int lt_take_sample(int fd);

/* Reads the first sample of a ring of `size` bytes, a power of two, that lies a `page` behind `mapped`.
 * Returns 0 if there is none. */
int lt_read_sample(const void *mapped, uint64_t page, uint64_t size, uint64_t registers,
                   struct lt_sample *sample);

#endif
