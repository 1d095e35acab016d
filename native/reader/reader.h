/* The part of the tool that is C. This part sums the tables of a watched process, reads /proc and
 * counts events.
 *
 * Every function works on private copies (lt_copy()). Each function checks every count, kind and id
 * against the sizes that the caller gave. No function trusts the copies. No function allocates or
 * keeps state of its own, so all may run without Python's lock.
 *
 * Like abi.h this file is read by cffi without the lines that begin with '#'. So it has only
 * comments, structs, enums with plain numbers and prototypes. */
#ifndef LOCKTOP_READER_H
#define LOCKTOP_READER_H

#include <stdint.h>

#include "drain.h"
#include "histograms.h"
#include "locktop/abi.h"

enum { LT_KINDS = 16 }; /* room for every kind of lock that a key can name */

/* The figures of one lock, summed over threads. Ticks, as in struct lt_counts. */
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
    uint64_t hold_scaled_ticks; /* sampled holds scaled up, for each thread by its own sample */
    uint64_t hold_unscaled;     /* uncontended acquisitions of threads that timed no hold */
    /* sem: the two counts of the latest life in which a thread counted (lt_lock.generation) */
    uint64_t life;
    uint64_t life_acquisitions;
    uint64_t life_signals;
    uint64_t lines; /* index + 1 of its first in struct lt_line_sums, 0 none */
    /* futex: the latest lt_lock_counters.woken_at, and the tid of that thread; 0 none */
    uint64_t woken_at;
    uint64_t woken_tid;
};

/* The use that a thread made of a lock without an owner: a semaphore, a condition, a barrier. The
 * counts of a semaphore are those of one life. */
struct lt_use {
    uint32_t lock;          /* id */
    uint16_t kind;          /* enum lt_kind */
    uint16_t has_signalled; /* of a semaphore: in any life more often than it got it */
    uint64_t acquisitions;
    uint64_t signals;  /* barrier: none */
    uint64_t life;     /* sem: lt_lock.generation of that life, else 0 */
    uint64_t taken_at; /* sem: as in struct lt_lock_counters, else 0 */
};

enum { LT_USES = 1024 }; /* uses of one thread that are listed */

/* The figures of one thread by kind of lock. */
struct lt_thread_sum {
    uint64_t acquisitions[16]; /* LT_KINDS of them */
    uint64_t contended[16];
    uint64_t wait_ticks[16];
    uint64_t counted;         /* waits in contention that are in lt_line_sums.waits */
    uint64_t left_out;        /* those that found no room there */
    uint32_t use_count;       /* entries in `uses`; more than LT_USES: the others are left out */
    struct lt_use uses[1024]; /* LT_USES */
    uint32_t tid;
};

/* The waits for one lock with one stack, of all threads. With `blame` 1, these waits are charged to
 * threads that had taken the lock at `stack` (struct lt_charge). `living` is 0 for threads that
 * ended, and for waits. */
struct lt_site_sum {
    uint32_t lock;
    uint32_t stack;
    uint32_t living;
    uint32_t blame;
    uint64_t count; /* 0: empty */
    uint64_t wait_ticks;
    uint64_t wait_max;
};

/* The waits of other threads for a lock that are charged to one thread. The thread had taken the
 * lock at `stack`, which is a stack of a struct lt_site with LT_SITE_BLAME. */
struct lt_charge {
    uint32_t lock;
    uint32_t stack;
    uint32_t holder; /* tid; 0 for threads that ended */
    uint32_t unused;
    uint64_t wait_ticks;
};

/* The charges of one lock. If these are more than `waited`, each counts for waited / charged of its
 * ticks. */
struct lt_charged_lock {
    const struct lt_charge *charges;
    uint64_t count;
    uint64_t waited;  /* ticks waited for the lock in all */
    uint64_t charged; /* ticks of all its charges */
};

/* The sums of the sites of all threads. A program has few call sites, but each thread may be
 * charged at each of these. So the table has sums, and the list of charges has no order. */
struct lt_sites {
    struct lt_site_sum *table; /* open addressing */
    uint32_t capacity;         /* a power of two */
    uint32_t used;
    struct lt_charge *charges;
    uint32_t charge_capacity;
    uint32_t charge_count;
};

/* One lock as it is handed to Python. `changed_*` is the change since the scan before. */
struct lt_lock_row {
    uint32_t lock; /* id */
    uint32_t kind;
    uint64_t address;
    uint32_t generation;
    uint32_t destroyed;
    uint32_t type;
    uint32_t foreign_releases;
    uint32_t made_at;
    uint32_t parent_posts; /* sem: as in struct lt_lock */
    uint64_t sites;        /* offset of the first struct lt_retired_site */
    uint64_t waits;        /* as in struct lt_lock */
    uint64_t acquisitions;
    uint64_t contended;
    uint64_t trylock_failed;
    uint64_t signals;
    uint64_t unheard;
    uint64_t life_acquisitions; /* sem: of its present life */
    uint64_t life_signals;      /* the same */
    uint64_t wait_ticks;
    uint64_t wait_max;
    uint64_t hold_ticks; /* measured and estimated together */
    uint64_t hold_timed;
    uint64_t hold_max;
    uint64_t hold_mean;    /* of the sampled holds, 0 unknown */
    uint64_t wait_counted; /* waits in its histogram */
    uint64_t hold_counted; /* holds in its histogram */
    uint64_t changed_acquisitions;
    uint64_t changed_contended;
    uint64_t changed_signals;
    uint64_t changed_wait_ticks;
    uint64_t changed_hold_ticks;
    uint64_t woken_at; /* as in struct lt_lock_sum */
    uint64_t woken_tid;
};

/* The file of the watched process. Its begin is mapped, which makes small copies cheap. The process
 * may cut the file off at any time. A load from the mapping would end the tool then. So nothing but
 * lt_copy() may use the bytes. */
struct lt_mapping {
    const uint8_t *bytes;
    uint64_t size; /* bytes that are mapped */
    int32_t fd;
};

/* Maps the first `size` bytes of a file. Returns 0 if that is not possible; then copies use pread.
 * A load from a hole of the file gives the hole memory, so the caller bounds `size`. */
int lt_map_file(int fd, uint64_t size, struct lt_mapping *mapping);

/* No other thread may copy meanwhile. */
void lt_unmap_file(struct lt_mapping *mapping);

/* Copies a part of the file. Returns 1, or 0 if the file does not have that part; an empty part is
 * always there. The process may change the part meanwhile: two equal copies are needed to know the
 * state of one moment. */
int lt_copy(const struct lt_mapping *from, void *to, uint64_t size, uint64_t offset);

/* The present reading of the target's clock, or of CLOCK_MONOTONIC if this machine does not know
 * the target's clock. */
uint64_t lt_reader_ticks(uint32_t clock);

/* The same moment on the target's clock and on CLOCK_MONOTONIC. Returns how far apart the two
 * readings may be, in nanoseconds. */
uint64_t lt_reader_clock_pair(uint32_t clock, uint64_t *ticks, uint64_t *ns);

/* Adds the lock counters of one thread, in `size` bytes, to `sums` (by lock id) and to `thread`.
 * `waits` are their `wait_count` struct lt_waits. Returns how many entries it left out because
 * their lock or their kind does not exist. */
uint32_t lt_fold_counters(const void *counters, uint64_t size, const void *waits,
                          uint32_t wait_count, struct lt_lock_sum *sums, uint32_t sum_count,
                          struct lt_thread_sum *thread);

/* Adds what a thread counts as "other locks". */
void lt_fold_other(const struct lt_thread *block, struct lt_lock_sum *sums, uint32_t sum_count,
                   struct lt_thread_sum *thread);

/* Adds the figures in `size` bytes of struct lt_retired. Returns how many it left out because their
 * lock does not exist. */
uint32_t lt_fold_retired(const void *retired, uint64_t size, struct lt_lock_sum *sums,
                         uint32_t sum_count);

/* The traits of a kind of lock: bits of enum lt_trait. 0 for a number without a kind. */
uint32_t lt_kind_traits(uint32_t kind);

/* Counts the mutexes and rwlocks in `size` bytes of struct lt_lock that threads released which had
 * not taken them. */
uint32_t lt_count_handed_over(const void *locks, uint64_t size);

/* Adds the sites of the thread `tid`, in `size` bytes. Returns LT_READ_DONE; or LT_READ_MORE_*,
 * without having added anything, if there might be too little room. */
int lt_fold_sites(const void *sites, uint64_t size, uint32_t tid, struct lt_sites *to);

/* Adds sums to an open-addressing table of `capacity`. Returns 1; or 0, without having added
 * anything, if the table might get too full. */
int lt_fold_site_sums(const struct lt_site_sum *sums, uint32_t count, struct lt_site_sum *table,
                      uint32_t capacity, uint32_t *used);

/* Moves the table's entries to its front, by lock and then by most wait. Returns their number. */
uint32_t lt_sort_sites(struct lt_site_sum *table, uint32_t capacity);

/* Copies `count` charges to `sorted` by lock. `ends`, of zeros, gets for each of `lock_count` locks
 * the index behind its charges. Charges for other locks are left out. */
void lt_group_charges(const struct lt_charge *charges, uint32_t count, uint32_t *ends,
                      uint32_t lock_count, struct lt_charge *sorted);

/* The ticks of a lock's charges in all. */
uint64_t lt_charged_ticks(const struct lt_charged_lock *lock);

/* Adds the charges of locks by holder and origin, and sorts the sums by most wait, holder, origin.
 * An origin is a number that the caller gives to stacks: stacks[i] has origins[i]. The stacks are
 * in order. Charges with other stacks are left out. The rows, of zeros, get the origin as `stack`.
 * The `capacity` is a power of two. Returns the number of rows. A result above `capacity` means
 * that there are too few rows, and that some are not clear. */
uint32_t lt_sum_charges(const struct lt_charged_lock *locks, uint32_t lock_count,
                        const uint32_t *stacks, const uint32_t *origins, uint32_t stack_count,
                        struct lt_charge *rows, uint32_t capacity);

enum lt_read_result {
    LT_READ_DONE = 0,
    LT_READ_GONE = 1,         /* no thread has this block, or the thread ended meanwhile */
    LT_READ_DAMAGED = 2,      /* the tables lie outside the file or are too large */
    LT_READ_MORE_SCRATCH = 3, /* scratch_needed bytes are needed; nothing was added: call again */
    LT_READ_MORE_SITES = 4,   /* a larger table of sites is needed; nothing was added: call again */
    /* a thread that is not packed: its held list or its uses are too long */
    LT_READ_CHANGED = 5,
    LT_READ_MORE_CHARGES = 6, /* room for more charges is needed; nothing was added: call again */
    LT_READ_MORE_PACKED = 7,  /* room for more packed threads is needed; nothing was added */
    LT_READ_MORE_LINES = 8    /* room for more lines is needed; nothing was added */
};

enum { LT_PACKED_MAX = 8192 }; /* bytes that one packed thread needs at most */

/* The ring of one thread. */
struct lt_ring {
    uint64_t offset;   /* of its first slot; 0: there is none */
    uint64_t capacity; /* slots */
    uint64_t head_at;  /* offset of its lt_thread.ring_head */
    uint64_t head;     /* records ever written, as read before */
    uint64_t first;    /* the first record that was not copied yet */
};

/* The input and the result of reading a thread. The caller sets the first part once a cycle. */
struct lt_thread_read {
    const struct lt_mapping *file;
    uint32_t clock;     /* enum lt_clock */
    uint64_t long_wait; /* ticks: if a longer wait ends meanwhile, the thread is read again */
    uint8_t *scratch;
    uint64_t scratch_size;
    uint64_t scratch_max; /* bytes: tables cannot be larger */
    struct lt_lock_sum *sums;
    struct lt_sites sites;
    struct lt_line_sums lines;
    uint32_t sum_count;
    uint32_t refused;     /* counters left out so far */
    uint32_t next;        /* index of the thread to read */
    uint32_t mode;        /* lt_control.mode */
    uint32_t contention;  /* a bit for each kind whose waits are contention */
    uint32_t skips_lines; /* 1: the histograms are not read */
    uint32_t packed_count;
    uint8_t *packed; /* threads that changed */
    uint64_t packed_size;
    uint64_t packed_capacity;

    uint64_t scratch_needed;
    uint64_t line_bytes;      /* of the histograms of all threads so far, read or not */
    uint64_t now;             /* ticks when it was read */
    struct lt_thread_sum sum; /* sums of the thread's tables */
    /* newer than the caller's copy; its wait and its held list are of one moment */
    struct lt_thread block;
};

/* The findings of one reading of a thread. */
struct lt_thread_seen {
    uint64_t size;     /* bytes of `data`; 0: nothing is known, or the data does not fit */
    uint64_t counted;  /* of the struct lt_thread_sum when the histograms were read last */
    uint64_t left_out; /* the same; LT_NEVER_COUNTED: this thread's were never read */
    uint64_t data[253];
};
#define LT_NEVER_COUNTED UINT64_MAX

/* Adds the thread that was read last to `read->packed`, which has room for LT_PACKED_MAX bytes. The
 * thread is a msgpack array with the fields of RawThread (collector/shm/reader.py) in their order.
 * The block is left out if the caller knows it, and the histogram if it was not read. The held list
 * and the uses are those that fit into a struct lt_thread_seen. */
void lt_pack_thread(struct lt_thread_read *read, uint32_t index, uint64_t offset, int knows_block);

/* Reads threads. Copies the block and the tables of each, checks that they belong together, and
 * adds them to the sums. `offsets` are those of the blocks in the file. Begins with the thread
 * `read->next`, which the caller sets to 0 first. Packs each thread that differs from `seen` of the
 * reading before. Returns
 *
 *   LT_READ_DONE     after the last thread
 *   LT_READ_CHANGED  after a thread that is too large for `seen`; `read` has it
 *   LT_READ_MORE_*   at a thread that needs more room
 *   LT_READ_DAMAGED  at a thread whose block or tables are not where they should be
 *
 * Called again it goes on from there. `now` gets the time at which each thread was read, in ticks;
 * 0 if the thread is gone. `rings` get all but `first`; the ring of a thread that is gone has
 * nothing new. */
int lt_read_threads(struct lt_thread_read *read, const uint64_t *offsets, uint32_t count,
                    struct lt_thread_seen *seen, uint64_t *now, struct lt_ring *rings);

/* Copies the new records of each ring, at most the last `quota` of a ring, one after the other.
 * Leaves out those that may be overwritten by now. Begins with the ring `copy->next`, which the
 * caller sets to 0 first, and returns after `copy->at_once` rings with new records. `records` has
 * room for `at_once` times `quota`. Returns the number of copies. Returns -1 if the ring
 * `copy->next` lies outside of the file, or has more than LT_MAX_RING records. */
struct lt_ring_copy {
    const struct lt_mapping *file;
    struct lt_ring *rings;
    uint32_t count;
    uint32_t next;
    uint32_t at_once;
    uint32_t quota;
    uint8_t *records;
    uint64_t written; /* records that were new, copied or not, in all calls */
};
enum { LT_MAX_RING = 1 << 20 };
int64_t lt_copy_rings(struct lt_ring_copy *copy);

/* Returns how many rings have new records. */
uint32_t lt_count_new_rings(const struct lt_ring *rings, uint32_t count);

/* Packs records column by column, each number as its difference to the record before, in groups of
 * seven bits. The records are sound. `packed` has room for LT_PACKED_RECORD_MAX bytes for each
 * record. Returns the number of bytes. */
enum { LT_PACKED_RECORD_MAX = 64 };
uint64_t lt_pack_records(const uint8_t *records, uint32_t count, uint8_t *packed);

/* The opposite, for bytes from a stranger: `records` has room for `count`. Returns 1, or 0 if the
 * bytes are not exactly so many records. */
int lt_unpack_records(const uint8_t *packed, uint64_t size, uint8_t *records, uint32_t count);

/* Returns the earliest start of `count` records, ticks; 0 for no records. */
uint64_t lt_first_start(const uint8_t *records, uint32_t count);

/* Returns the earliest time of `count` marks, ticks; 0 for no marks. */
uint64_t lt_first_mark(const uint8_t *marks, uint32_t count);

/* Copies the records that began before `to` and were over at `from` or later (ticks). `output` has
 * room for `count`. Returns the number of copies. */
uint32_t lt_pick_span(const uint8_t *records, uint32_t count, uint64_t from, uint64_t to,
                      uint8_t *output);

/* Copies the records whose span has one of the moments (ticks, sorted) to `output`. The span of a
 * record is its wait with the hold that follows. Returns their number. */
uint32_t lt_pick_moments(const uint8_t *records, uint32_t count, const uint64_t *moments,
                         uint32_t moment_count, uint8_t *output);

/* Copies the records with a wait of at least `ticks` to `output`, at most `capacity`. If there are
 * more, those for locks that threads hold go first. Returns their number. */
uint32_t lt_long_waits(const uint8_t *records, uint32_t count, uint64_t ticks, uint8_t *output,
                       uint32_t capacity);

/* Returns how many of the records are sound events. The bytes between the numbers of such a record
 * are those that abi.h draws. So the record decodes to one event and to nothing else. */
uint32_t lt_count_sound(const uint8_t *records, uint32_t count);

/* When an event was over, and the index of its record. */
struct lt_record_end {
    uint64_t end; /* ticks */
    uint64_t index;
};

/* Finds the `capacity` events that were over last, in no order. The records are sound. Returns the
 * number of events found. */
uint32_t lt_newest_records(const uint8_t *records, uint32_t count, struct lt_record_end *newest,
                           uint32_t capacity);

/* The histograms of one reading. */
struct lt_lines_of_locks {
    const struct lt_line_sums *lines;
    const struct lt_lock_sum *sums; /* of the same reading: the first line of each lock */
    uint32_t count;                 /* of the sums; locks beyond have no lines */
};

/* Writes at most `capacity` rows. Locks marked in `wanted` come first, then locks with waits, then
 * the others, each group by use. `locks` holds `count` struct lt_lock; `before` holds the sums of
 * the scan before (`before_count` of them, 0 for none). Returns the number of rows. `left_out` gets
 * the number of used locks that found no room. `lines` may be of an earlier reading. */
uint32_t lt_pick_locks(const void *locks, uint32_t count, const struct lt_lock_sum *sums,
                       const struct lt_lock_sum *before, uint32_t before_count,
                       const uint8_t *wanted, const struct lt_lines_of_locks *lines,
                       struct lt_lock_row *rows, uint32_t capacity, uint32_t *left_out);

/* The facts that are known of a task. */
enum lt_task_fact {
    LT_TASK_THERE = 1,  /* the task's stat line, without which nothing is known */
    LT_TASK_SCHED = 2,  /* the task's schedstat */
    LT_TASK_DISK = 4,   /* a stat line long enough for disk_ticks */
    LT_TASK_ASLEEP = 8, /* the task sleeps, and all else is of the same moment */
    LT_TASK_SLEPT = 16  /* the task has been on no processor since the sample before */
};

/* One thread as the kernel shows it (proc_pid_stat(5), and sched-stats.rst of the kernel). */
struct lt_task {
    uint64_t at_ns; /* when the task was read, on CLOCK_MONOTONIC */
    uint64_t cpu_ticks;
    uint64_t disk_ticks; /* time in which the task waited for block devices */
    uint64_t ran_ns;
    uint64_t queued_ns;
    uint64_t runs;
    uint32_t facts; /* lt_task_fact */
    uint32_t name_size;
    uint32_t call_size;
    uint8_t state; /* letter */
    uint8_t name[71];
    /* the text of its syscall file; call_size is 0 if the caller did not want it */
    uint8_t call[192];
};

/* An entry of the table of tasks: a thread's id, 0 for an empty entry. The descriptors are kept
 * open for the thread, each -1 for none. */
struct lt_task_files {
    int32_t tid;
    int32_t stat;
    int32_t schedstat;
    int32_t syscall;
};

/* The threads of one process. The caller owns the arrays, which have `count` entries. */
struct lt_task_table {
    int32_t directory; /* /proc/PID/task, open */
    uint32_t count;
    uint32_t kept;     /* descriptors that are kept open */
    uint32_t max_kept; /* descriptors that may be kept open */
    struct lt_task_files *files;
    struct lt_task *tasks;
};

/* Fills an empty entry. */
void lt_add_task(struct lt_task_table *table, uint32_t index, int32_t tid);

/* Empties an entry. */
void lt_forget_task(struct lt_task_table *table, uint32_t index);

/* Reads the schedstat and the stat of the threads at `indexes`, and with `calls` the syscall file.
 * A sleeping thread (LT_TASK_ASLEEP) is certain only if lt_still_sleeps() confirms it afterwards.
 * Returns 0 or a negative errno. The errno is that of a lack of descriptors or memory. The errno is
 * -EPERM or -EACCES if a thread's call may not be seen. A lack is returned only after all kept
 * descriptors have been closed. */
int lt_read_tasks(struct lt_task_table *table, const uint32_t *indexes, uint32_t count, int calls);

/* The schedstat of a thread. */
struct lt_sched {
    uint64_t at_ns; /* as in struct lt_task */
    uint64_t ran_ns;
    uint64_t queued_ns;
    uint64_t runs; /* 0: not known, or the thread ended */
};

/* Reads the schedstat alone of the threads at `indexes`; their struct lt_task stay. This function
 * takes a quarter of the time of lt_read_tasks(). Returns 0 or a negative errno as above. */
int lt_read_scheds(struct lt_task_table *table, const uint32_t *indexes, uint32_t count,
                   struct lt_sched *scheds);

/* Reads the schedstat of all threads. Reads the rest of the threads that did not sleep all the time
 * since the sample before. In some rounds it also reads the rest of a sleeping thread, whose name
 * may have changed. Writes the indexes of the threads that it read, and of those that ended
 * (without LT_TASK_THERE), to `read`. `read` has room for all. Returns their number, or a negative
 * errno as above; then nothing in the table counts. */
int lt_sample_tasks(struct lt_task_table *table, uint32_t round, uint32_t *read);

/* Whether a thread slept when it was read or sampled, and has been on no processor since. */
int lt_still_sleeps(struct lt_task_table *table, uint32_t index);

/* Leaves at the beginning of `indexes` those for which lt_still_sleeps() is true, and returns their
 * number. */
uint32_t lt_pick_asleep(struct lt_task_table *table, uint32_t *indexes, uint32_t count);

/* One bucket of a profile (struct lt_profile) that has samples. */
struct lt_bucket {
    uint64_t index;
    uint64_t count;
};

/* Writes the buckets with samples to `picked`, in order, and returns their number. If there are
 * more than `room`, those with the fewest samples are left out and counted. */
uint32_t lt_pick_buckets(const uint64_t *counts, uint32_t count, struct lt_bucket *picked,
                         uint32_t room, uint32_t *left_out);

#endif
