/* locktop.h: what a program can tell locktop about itself.
 *
 * A program gives names to its locks, puts marks on the timeline, and announces the locks that it
 * made itself. This is a header without a library: there is nothing to link. Nothing happens (a
 * load and a jump that is not taken) unless the program runs with liblocktop.so preloaded. For C
 * and C++, gcc and clang. Other languages call the functions of the same names in the preloaded
 * library, if it is there (docs/annotate.md).
 *
 * Any thread may call these functions at any time. None of them allocates, blocks, or changes
 * errno.
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

/* void locktop_name(const void *lock, const char *name)
 *
 * Names a lock of any kind: a pthread_mutex_t, a std::mutex, a semaphore, a lock of the program's
 * own. The library copies the name; NULL takes the name back. Name a lock after its initialisation:
 * to initialise or destroy a lock ends its name. */
#define locktop_name(lock, name)                                                                   \
    LOCKTOP_CALL2("locktop_name", const void *, lock, const char *, name)

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
#define locktop_acquire(lock)         LOCKTOP_CALL1("locktop_acquire", const void *, lock)
#define locktop_acquire_shared(lock)  LOCKTOP_CALL1("locktop_acquire_shared", const void *, lock)
#define locktop_acquired(lock)        LOCKTOP_CALL1("locktop_acquired", const void *, lock)
#define locktop_acquired_shared(lock) LOCKTOP_CALL1("locktop_acquired_shared", const void *, lock)
#define locktop_gave_up(lock)         LOCKTOP_CALL1("locktop_gave_up", const void *, lock)
#define locktop_released(lock)        LOCKTOP_CALL1("locktop_released", const void *, lock)

/* void locktop_forget(const void *lock)
 *
 * Tells that the address will be used for something else. Ends the lock's name, and the lock if it
 * is the program's own. */
#define locktop_forget(lock) LOCKTOP_CALL1("locktop_forget", const void *, lock)

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
