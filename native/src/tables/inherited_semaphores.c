/* Reads from the file of the parent how the parent used a semaphore.
 *
 * The parent goes on, and its file shows the present. The copy of the init sites in this process
 * shows the life of the semaphore at the fork. So the counts are of the same semaphore if the
 * parent's file still shows that life. Posts by threads that had not got the semaphore are noted
 * until that life ends. */
#include "tables/inherited_semaphores.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/lock_key.h"
#include "base/modes.h"
#include "base/sys.h"
#include "shm/array.h"
#include "shm/segment.h"
#include "tables/init_sites.h"
#include "tables/lock_table.h"
#include "tables/thread_table.h"

enum {
    ONE_UNIT = 2, /* the type of a semaphore with the first value 1 */
    THREADS_MAX = 4096,
    PROBES_MAX = 64,
    DEPTH_MAX = 64,
    FIRST_TABLE = 64, /* descriptors that each process of Linux has room for */
    FROM_END = 8,
    NOT_COUNTED =
        LT_NOTE_NO_ROOM | LT_NOTE_NO_THREAD_BLOCK | LT_NOTE_LOCKS_FOLDED | LT_NOTE_NO_CLOCK
};

/* The file of the parent. A later process may have a file of that name. */
static struct {
    char path[SHM_PATH_MAX];
    uint32_t pid;
    uint64_t created_real_ns; /* 0: no parent */
} parent;

void semaphores_inherit(void)
{
    memset(&parent, 0, sizeof parent);
    if (lt_shm) {
        memcpy(parent.path, shm_path, sizeof parent.path);
        parent.pid = lt_shm->pid;
        parent.created_real_ns = lt_shm->created_real_ns;
    }
    init_sites_forked();
}

/* Copies a part of the file. The parent may have given pages back. A read finds zeros there. A load
 * from the mapping would ask for memory, and would raise SIGBUS if there is none. */
static bool copy(long file, void *to, uint64_t offset, uint64_t size)
{
    return sys_call6(SYS_pread64, file, (long)to, (long)size, (long)offset, 0, 0) == (long)size;
}

#define COPY_OF_HEADER(file, to, member)                                                           \
    copy(file, to, offsetof(struct lt_header, member), sizeof((struct lt_header *)0)->member)

/* Whether the parent counted each get and each post since it began. */
static bool all_is_counted(long file)
{
    struct lt_control control;
    uint32_t notes, unwatched;
    return copy(file, &control, LT_CONTROL_OFFSET, sizeof control) && !dormant(control.mode) &&
           !dormant(control.base_level) && epoch_of(control.mode) <= 1 &&
           COPY_OF_HEADER(file, &notes, notes) &&
           COPY_OF_HEADER(file, &unwatched, threads_unwatched) && !(notes & NOT_COUNTED) &&
           !unwatched;
}

/* A stray write of the parent may have hit its file. Then no number of the file may end this
 * process. */
static bool is_sound(const struct lt_array *array, uint64_t element_size)
{
    return array->first && array->element_size == element_size &&
           array->count / array->first < (1u << LT_CHUNKS) - 1;
}

/* The first bits of a hash: the place in a table of so many entries. 0 for an impossible table. */
static unsigned bits_of(uint32_t capacity)
{
    return capacity && !(capacity & (capacity - 1)) ? (unsigned)__builtin_ctz(capacity) : 0;
}

/* The file offset of the parent's entry of the lock, 0 if there is none. */
static uint64_t entry_of(long file, uint64_t key)
{
    struct lt_array locks;
    struct lt_lock lock;
    uint64_t roots, path = lock_hash(key);
    uint32_t count, id;
    if (!COPY_OF_HEADER(file, &locks, locks) || !COPY_OF_HEADER(file, &roots, lock_roots) ||
        !COPY_OF_HEADER(file, &count, lock_root_count) || !is_sound(&locks, sizeof lock))
        return 0;
    unsigned bits = bits_of(count);
    if (!bits || !copy(file, &id, roots + (path >> (64 - bits)) * sizeof id, sizeof id))
        return 0;
    path <<= bits;
    for (int depth = 0; id && depth < DEPTH_MAX; depth++, path <<= 2) {
        uint64_t offset = array_offset(&locks, id);
        if (!offset || !copy(file, &lock, offset, sizeof lock))
            return 0;
        if (lock.key == key)
            return offset;
        id = lock.child[path >> 62];
    }
    return 0;
}

/* The posts by one thread in one life of the semaphore. */
static uint32_t posts_in_life(const struct lt_counts *counts, uint32_t generation)
{
    int32_t posts = (int32_t)((uint32_t)counts->signals - (uint32_t)(counts->before >> 32));
    return counts->life >> 1 == generation && posts > 0 ? (uint32_t)posts : 0;
}

static uint32_t posts_of_thread(long file, uint64_t thread, uint64_t key, uint32_t generation)
{
    struct lt_lock_counters counters;
    struct {
        uint64_t offset;
        uint32_t capacity;
    } table;
    if (!copy(file, &table.offset, thread + offsetof(struct lt_thread, counters),
              sizeof table.offset) ||
        !copy(file, &table.capacity, thread + offsetof(struct lt_thread, counters_capacity),
              sizeof table.capacity) ||
        !table.offset || !bits_of(table.capacity))
        return 0;
    uint64_t home = lock_hash(key) >> (64 - bits_of(table.capacity));
    for (uint64_t i = 0; i < PROBES_MAX && i < table.capacity; i++) {
        uint64_t offset = table.offset + (home ^ i) * sizeof counters;
        if (!copy(file, &counters, offset, sizeof counters) || !counters.key)
            return 0;
        if (counters.key == key)
            return posts_in_life(&counters.counts, generation);
    }
    return 0;
}

/* The posts by all living threads, at most LT_PARENT_POSTS. */
static uint32_t posts_of_threads(long file, uint64_t key, uint32_t generation)
{
    struct lt_array threads;
    uint32_t posts = 0;
    if (!COPY_OF_HEADER(file, &threads, threads) || !is_sound(&threads, sizeof(struct lt_thread)))
        return 0;
    for (uint32_t i = 0; i < threads.count && i < THREADS_MAX && posts < LT_PARENT_POSTS; i++) {
        uint64_t thread = array_offset(&threads, i);
        uint32_t more = thread ? posts_of_thread(file, thread, key, generation) : 0;
        posts = more < LT_PARENT_POSTS - posts ? posts + more : LT_PARENT_POSTS;
    }
    return posts;
}

/* The posts of a lock of one unit, 0 if the semaphore may be no lock. */
static uint32_t posts_as_lock(long file, uint64_t key, uint32_t generation)
{
    struct lt_lock lock;
    uint64_t entry = entry_of(file, key);
    if (!entry)
        return 0;
    uint32_t posts = posts_of_threads(file, key, generation);
    /* In this order: a new life has a new generation before it forgets the foreign posts. */
    if (!copy(file, &lock, entry, sizeof lock) || lock.foreign_releases ||
        !copy(file, &lock, entry, sizeof lock) || lock.generation != generation ||
        !all_is_counted(file))
        return 0;
    return posts;
}

static bool is_of_parent(long file)
{
    uint32_t pid;
    uint64_t created;
    return COPY_OF_HEADER(file, &pid, pid) && COPY_OF_HEADER(file, &created, created_real_ns) &&
           pid == parent.pid && created == parent.created_real_ns;
}

/* A number near the end of the kernel's table of descriptors, whose first free number is `lowest`.
 * The table has a power of two of entries. To let that table grow takes the kernel long. */
static long far_from(long lowest)
{
    long end = FIRST_TABLE;
    while (end <= lowest + FROM_END)
        end *= 2;
    return end - FROM_END;
}

/* Opens the parent's file under a high number. Returns a negative number on failure.
 *
 * The kernel gives a program the lowest free number. Another thread may close all descriptors at
 * any time, open a file, and rely on the number. If that were the number here, the library would
 * close the file of the program. So a low number is taken for the time of two system calls only. */
static long open_file(void)
{
    long low = sys_call6(SYS_openat, AT_FDCWD, (long)parent.path,
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0, 0, 0);
    if (low < 0)
        return low;
    long file = sys_call3(SYS_fcntl, low, F_DUPFD_CLOEXEC, far_from(low));
    sys_call3(SYS_close, low, 0, 0);
    return file;
}

/* The posts of a lock of one unit by the parent's file, 0 if that cannot be known. */
static uint32_t posts_in_file(uint64_t key, uint32_t generation)
{
    long file = open_file();
    if (file < 0)
        return 0;
    uint32_t posts = is_of_parent(file) ? posts_as_lock(file, key, generation) : 0;
    /* Again: the number may be of another file by now. Then that file is not closed. */
    if (!is_of_parent(file))
        return 0;
    sys_call3(SYS_close, file, 0, 0);
    return posts;
}

/* Looks once for each lock. A look at the tables of many threads takes long, and a program may wait
 * often. */
void inherited_semaphore_check(struct lt_thread *t, uint64_t key)
{
    uint32_t type, generation;
    if (!parent.created_real_ns || shm_is_sealed())
        return;
    const struct lt_lock_counters *counters = counters_find(t, key);
    struct lt_lock *lock = lock_find(key);
    /* A thread of this process that has got the semaphore found it free. */
    if (!counters || counters->counts.acquisitions || !lock || lock->generation ||
        lock->parent_posts || !init_is_of_parent(key, &type, &generation) || type != ONE_UNIT)
        return;
    uint32_t posts = posts_in_file(key, generation);
    __atomic_store_n(&lock->parent_posts, (uint16_t)(posts ? posts : LT_PARENT_NOT_KNOWN),
                     __ATOMIC_RELAXED);
}
