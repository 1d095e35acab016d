/* locktop.h: what a program can tell locktop about itself.
 *
 * A program gives names to its locks, puts marks on the timeline, and announces the locks that it
 * made itself. This is a header without a library: there is nothing to link. Nothing happens (a
 * load and a jump that is not taken) unless the program runs with liblocktop.so preloaded. For C
 * and C++, gcc and clang. Other languages call the functions of the same names in the preloaded
 * library, if it is there (docs/annotate.md).
 *
 * Any thread may call these functions at any time. None of them allocates, blocks, or changes
 * errno. The functions of profiles make system calls, and may wait for each other.
 *
 *   locktop_name(&cache_lock, "session cache");
 *
 *   locktop_acquire(&lock);          before the thread may wait for the lock
 *   take(&lock);
 *   locktop_acquired(&lock);         the thread has the lock (locktop_gave_up: will not get it)
 *   ...
 *   release(&lock);
 *   locktop_released(&lock);         other threads may have the lock */
#ifndef LOCKTOP_H
#define LOCKTOP_H

#include <stddef.h>
#include <stdint.h>

#define LOCKTOP_NAME_MAX 111 /* bytes of a name that are kept */
#define LOCKTOP_MARK_MAX 44  /* bytes of a mark that are kept */

/* The function in the preloaded library, or NULL. The function is found through the global offset
 * table. In an executable at a fixed address the linker would make a plain weak reference NULL for
 * good. */
#if defined(__x86_64__)
#define LOCKTOP_FIND(function, symbol)                                                             \
    __asm__(".weak " symbol "\n\tmovq " symbol "@GOTPCREL(%%rip), %0" : "=r"(function))
#elif defined(__aarch64__)
#define LOCKTOP_FIND(function, symbol)                                                             \
    __asm__(".weak " symbol "\n\tadrp %0, :got:" symbol "\n\tldr %0, [%0, :got_lo12:" symbol "]"   \
            : "=r"(function))
#else
#define LOCKTOP_FIND(function, symbol) ((function) = NULL)
#endif

/* Macros, not inline functions: locktop then shows the line of the caller. */
#define LOCKTOP_CALL1(symbol, type, value)                                                         \
    __extension__({                                                                                \
        type locktop_value = (value);                                                              \
        void (*locktop_function)(type);                                                            \
        LOCKTOP_FIND(locktop_function, symbol);                                                    \
        if (locktop_function)                                                                      \
            locktop_function(locktop_value);                                                       \
    })
#define LOCKTOP_CALL2(symbol, type1, value1, type2, value2)                                        \
    __extension__({                                                                                \
        type1 locktop_value1 = (value1);                                                           \
        type2 locktop_value2 = (value2);                                                           \
        void (*locktop_function)(type1, type2);                                                    \
        LOCKTOP_FIND(locktop_function, symbol);                                                    \
        if (locktop_function)                                                                      \
            locktop_function(locktop_value1, locktop_value2);                                      \
    })

/* The address of a lock. A pthread_spinlock_t is volatile. */
#define LOCKTOP_LOCK const volatile void *

/* void locktop_name(const void *lock, const char *name)
 *
 * Names a lock of any kind: a pthread_mutex_t, a std::mutex, a semaphore, a lock of the program's
 * own. The library copies the name; NULL takes the name back. Name a lock after its initialisation:
 * to initialise or destroy a lock ends its name. */
#define locktop_name(lock, name)                                                                   \
    LOCKTOP_CALL2("locktop_name", LOCKTOP_LOCK, lock, const char *, name)

/* void locktop_mark(const char *text)
 *
 * Puts a mark on the timeline of the calling thread: "reload begins". */
#define locktop_mark(text) LOCKTOP_CALL1("locktop_mark", const char *, text)

/* void locktop_acquire(const void *lock), and so on
 *
 * Announces a lock of the program's own, known by its address. `_shared`: for readers, who do not
 * exclude each other.
 *
 * Call acquire before each attempt that may wait, or only when the thread has to wait. locktop
 * counts the attempt as contended if another thread held the lock meanwhile, else as free. The same
 * thread must call acquired or gave_up afterwards. For an attempt that does not wait (a trylock),
 * call acquired or gave_up alone. Call released right after the release of the lock, on the thread
 * that had it. */
#define locktop_acquire(lock)         LOCKTOP_CALL1("locktop_acquire", LOCKTOP_LOCK, lock)
#define locktop_acquire_shared(lock)  LOCKTOP_CALL1("locktop_acquire_shared", LOCKTOP_LOCK, lock)
#define locktop_acquired(lock)        LOCKTOP_CALL1("locktop_acquired", LOCKTOP_LOCK, lock)
#define locktop_acquired_shared(lock) LOCKTOP_CALL1("locktop_acquired_shared", LOCKTOP_LOCK, lock)
#define locktop_gave_up(lock)         LOCKTOP_CALL1("locktop_gave_up", LOCKTOP_LOCK, lock)
#define locktop_released(lock)        LOCKTOP_CALL1("locktop_released", LOCKTOP_LOCK, lock)

/* void locktop_forget(const void *lock)
 *
 * Tells that the address will be used for something else. Ends the lock's name, and the lock if it
 * is the program's own. */
#define locktop_forget(lock) LOCKTOP_CALL1("locktop_forget", LOCKTOP_LOCK, lock)

/* ---- profiles of the program's own code ----
 *
 * A profile counts where the program executes, or where its page faults, cache misses and so on
 * happen. A region of code is divided into buckets, and each sample counts in the bucket of its
 * instruction. Needs the library, preloaded or linked (-llocktop), but no tool and no rights.
 *
 *   int profile = locktop_profile_create((const void *)sum, LOCKTOP_WHOLE_FUNCTION, 4,
 *                                        LOCKTOP_TIMER, 0, LOCKTOP_THIS_THREAD, "sum");
 *   if (profile < 0)
 *       puts(locktop_profile_error(profile));
 *   locktop_profile_start(profile);
 *   ...
 *   locktop_profile_stop(profile);
 *   locktop_profile_read(profile, counts, buckets, &totals);
 *   locktop_profile_destroy(profile);
 *
 * Each function returns a negative code of enum locktop_profile_code if it fails. docs/profile.md
 * has more. */

enum locktop_profile_source {
    LOCKTOP_TIMER = 0,            /* CPU time of the thread, ns; always there */
    LOCKTOP_TASK_CLOCK = 1,       /* the same by perf_event_open, ns: finer */
    LOCKTOP_CONTEXT_SWITCHES = 2, /* events, as all that follow */
    LOCKTOP_PAGE_FAULTS = 3,
    LOCKTOP_CYCLES = 4,
    LOCKTOP_INSTRUCTIONS = 5,
    LOCKTOP_BRANCH_INSTRUCTIONS = 6,
    LOCKTOP_BRANCH_MISSES = 7,
    LOCKTOP_CACHE_MISSES = 8
};

enum locktop_profile_scope {
    LOCKTOP_THIS_THREAD = 0, /* the thread that starts the profile */
    LOCKTOP_ALL_THREADS = 1  /* also those that begin later */
};

enum locktop_profile_code {
    LOCKTOP_OK = 0,
    LOCKTOP_NOT_LOADED = -1,
    LOCKTOP_EMPTY_REGION = -2,
    LOCKTOP_BAD_REGION = -3,
    LOCKTOP_NOT_CODE = -4,
    LOCKTOP_NOT_A_FUNCTION = -5,
    LOCKTOP_OVERLAP = -6,
    LOCKTOP_TOO_MANY_REGIONS = -7,
    LOCKTOP_BAD_BUCKET_SIZE = -8,
    LOCKTOP_TOO_MANY_BUCKETS = -9,
    LOCKTOP_BAD_SOURCE = -10,
    LOCKTOP_BAD_INTERVAL = -11,
    LOCKTOP_BAD_SCOPE = -12,
    LOCKTOP_NOT_ON_THIS_MACHINE = -13,
    LOCKTOP_NOT_PERMITTED = -14,
    LOCKTOP_NO_SIGNAL = -15,
    LOCKTOP_NO_ROOM = -16,
    LOCKTOP_TOO_MANY_PROFILES = -17,
    LOCKTOP_NO_PROFILE = -18,
    LOCKTOP_RUNNING = -19,
    LOCKTOP_NOT_RUNNING = -20,
    LOCKTOP_UNLOADED = -21,
    LOCKTOP_TAKEN_OVER = -22,
    LOCKTOP_LIMIT = -23,
    LOCKTOP_CONFINED = -24,
    LOCKTOP_BUSY = -25,
    LOCKTOP_BAD_COUNTS = -26,
    LOCKTOP_NOT_WATCHED = -27,
    LOCKTOP_BAD_POINTER = -28
};

/* As the size of a region: the whole function that begins at, or has, the address `start`. */
#define LOCKTOP_WHOLE_FUNCTION ((size_t)-1)
#define LOCKTOP_REGIONS_MAX    8

struct locktop_profile_totals {
    uint64_t buckets;   /* of all regions; fewer than so many counts are refused */
    uint64_t samples;   /* in all buckets */
    uint64_t elsewhere; /* samples of code outside the regions */
    uint64_t lost;      /* samples whose place is not known */
    uint64_t interval;  /* ns or events between two samples */
    uint64_t ran_ns;    /* time between starts and stops */
    uint64_t threads;   /* threads that are sampled now */
    uint64_t left_out;  /* threads that could not be sampled */
};

struct locktop_profile_source_info {
    const char *name; /* "task clock" */
    const char *unit; /* "ns" or "events" */
    uint64_t default_interval;
    uint64_t min_interval;
    uint64_t max_interval;
    int64_t status; /* LOCKTOP_OK, LOCKTOP_NOT_ON_THIS_MACHINE or LOCKTOP_NOT_PERMITTED */
};

/* Defines the function that calls `symbol`. A name of its own: the assembler would take an inline
 * function of the same name for the symbol. */
#define LOCKTOP_FUNCTION(result, symbol, parameters, arguments, otherwise)                         \
    static inline __attribute__((unused)) result locktop_call_##symbol parameters                  \
    {                                                                                              \
        result(*locktop_function) parameters;                                                      \
        LOCKTOP_FIND(locktop_function, #symbol);                                                   \
        return locktop_function ? locktop_function arguments : (otherwise);                        \
    }

/* Makes a profile of the region of `size` bytes at `start`, and returns its number, above 0.
 *   bucket_size: bytes; a power of two, at least 4.
 *   source: enum locktop_profile_source.
 *   interval: ns or events between two samples; 0: the default of the source.
 *   scope: enum locktop_profile_scope.
 *   name: for the tool, up to 47 bytes; NULL: none. */
LOCKTOP_FUNCTION(int, locktop_profile_create,
                 (const void *start, size_t size, size_t bucket_size, int source, uint64_t interval,
                  int scope, const char *name),
                 (start, size, bucket_size, source, interval, scope, name), LOCKTOP_NOT_LOADED)
#define locktop_profile_create locktop_call_locktop_profile_create

/* Adds a region to a profile that does not run. Its buckets follow those of the regions before. */
LOCKTOP_FUNCTION(int, locktop_profile_add, (int profile, const void *start, size_t size),
                 (profile, start, size), LOCKTOP_NOT_LOADED)
#define locktop_profile_add locktop_call_locktop_profile_add

/* Starts and stops a profile, as often as you like: the counts go on. */
LOCKTOP_FUNCTION(int, locktop_profile_start, (int profile), (profile), LOCKTOP_NOT_LOADED)
#define locktop_profile_start locktop_call_locktop_profile_start
LOCKTOP_FUNCTION(int, locktop_profile_stop, (int profile), (profile), LOCKTOP_NOT_LOADED)
#define locktop_profile_stop locktop_call_locktop_profile_stop

/* Copies the counts of all buckets to an array of `count` elements, and the totals; either may be
 * NULL. LOCKTOP_UNLOADED and LOCKTOP_TAKEN_OVER say why the profile stopped: both are copied. */
LOCKTOP_FUNCTION(int, locktop_profile_read,
                 (int profile, uint64_t *counts, size_t count,
                  struct locktop_profile_totals *totals),
                 (profile, counts, count, totals), LOCKTOP_NOT_LOADED)
#define locktop_profile_read locktop_call_locktop_profile_read

/* Stops the profile if it runs, and ends it. */
LOCKTOP_FUNCTION(int, locktop_profile_destroy, (int profile), (profile), LOCKTOP_NOT_LOADED)
#define locktop_profile_destroy locktop_call_locktop_profile_destroy

/* Finds the range of a function by its symbol. */
LOCKTOP_FUNCTION(int, locktop_profile_find, (const char *symbol, const void **start, size_t *size),
                 (symbol, start, size), LOCKTOP_NOT_LOADED)
#define locktop_profile_find locktop_call_locktop_profile_find

/* Describes a source. LOCKTOP_BAD_SOURCE: there is none of this number or a higher one. */
LOCKTOP_FUNCTION(int, locktop_profile_source_info,
                 (int source, struct locktop_profile_source_info *info), (source, info),
                 LOCKTOP_NOT_LOADED)
#define locktop_profile_source_info(source, info)                                                  \
    locktop_call_locktop_profile_source_info(source, info)

/* Returns a line that says what a code means, and names the wrong argument. */
LOCKTOP_FUNCTION(const char *, locktop_profile_error, (int code), (code),
                 code == LOCKTOP_NOT_LOADED
                     ? "liblocktop.so is not loaded: preload it (locktop run) or link -llocktop"
                     : "unknown code")
#define locktop_profile_error locktop_call_locktop_profile_error

/* The same for a whole function of C. */
#define locktop_profile_create_function(function, bucket_size, source, interval, scope, name)      \
    locktop_profile_create((const void *)(uintptr_t)(function), LOCKTOP_WHOLE_FUNCTION,            \
                           bucket_size, source, interval, scope, name)

/* Puts a function into a section of its own, and makes a profile of that section. The section's
 * name must be an identifier:
 *
 *   LOCKTOP_SECTION(hot) int sum(const unsigned char *data, int size) { ... }
 *   int profile = locktop_profile_create_section(hot, 4, LOCKTOP_TIMER, 0, LOCKTOP_THIS_THREAD,
 *                                                "hot code"); */
#define LOCKTOP_SECTION(name) __attribute__((section(#name), noinline))
#define locktop_profile_create_section(section, bucket_size, source, interval, scope, name)        \
    __extension__({                                                                                \
        extern const char locktop_start_##section[] __asm__("__start_" #section);                  \
        extern const char locktop_stop_##section[] __asm__("__stop_" #section);                    \
        locktop_profile_create(locktop_start_##section,                                            \
                               (size_t)(locktop_stop_##section - locktop_start_##section),         \
                               bucket_size, source, interval, scope, name);                        \
    })

#ifdef __cplusplus

namespace locktop
{

namespace detail
{
/* Ends the attempt: lock() may throw. */
struct attempt {
    const void *lock;
    bool over;
    ~attempt()
    {
        if (!over)
            locktop_gave_up(lock);
    }
};
} /* namespace detail */

/* Like std::lock_guard, for a lock of the program's own: any type with lock() and unlock(). A lock
 * that the preloaded library sees by itself (a std::mutex) would be counted twice. */
template <class Lock> class guard
{
  public:
    explicit guard(Lock &lock) : lock_(lock)
    {
        locktop_acquire(&lock);
        detail::attempt attempt = {&lock, false};
        lock.lock();
        attempt.over = true;
        locktop_acquired(&lock);
    }
    ~guard()
    {
        lock_.unlock();
        locktop_released(&lock_);
    }
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;

  private:
    Lock &lock_;
};

/* The same for readers: lock_shared() and unlock_shared(). */
template <class Lock> class shared_guard
{
  public:
    explicit shared_guard(Lock &lock) : lock_(lock)
    {
        locktop_acquire_shared(&lock);
        detail::attempt attempt = {&lock, false};
        lock.lock_shared();
        attempt.over = true;
        locktop_acquired_shared(&lock);
    }
    ~shared_guard()
    {
        lock_.unlock_shared();
        locktop_released(&lock_);
    }
    shared_guard(const shared_guard &) = delete;
    shared_guard &operator=(const shared_guard &) = delete;

  private:
    Lock &lock_;
};

/* A name that lasts as long as this object: a member next to the lock, after the lock. */
class named
{
  public:
    named(const void *lock, const char *name) : lock_(lock)
    {
        locktop_name(lock, name);
    }
    ~named()
    {
        locktop_name(lock_, NULL);
    }
    named(const named &) = delete;
    named &operator=(const named &) = delete;

  private:
    const void *lock_;
};

} /* namespace locktop */
#endif

#endif
