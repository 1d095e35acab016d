/* locktop.h: what a program can tell locktop about itself.
 *
 * Names for its locks, marks on the timeline, and the locks that it made itself. A header without a
 * library: nothing to link, and nothing happens (a load and a jump that is not taken) unless the
 * program runs with liblocktop.so preloaded. For C and C++, gcc and clang; from other languages call the
 * functions of the same names in the preloaded library, where they are (docs/annotate.md).
 *
 * Everything here may be called from any thread and at any time; nothing allocates, blocks, or
 * changes errno.
 *
 *   locktop_name(&cache_lock, "session cache");
 *
 *   locktop_acquire(&lock);          before it may wait for its own lock
 *   take(&lock);
 *   locktop_acquired(&lock);         now it has it   (locktop_gave_up: it will not get it)
 *   ...
 *   release(&lock);
 *   locktop_released(&lock);         others may have it
 */
#ifndef LOCKTOP_H
#define LOCKTOP_H

#include <stddef.h>

#define LOCKTOP_NAME_MAX 111 /* bytes of a name that are kept */
#define LOCKTOP_MARK_MAX 44  /* bytes of a mark that are kept */

/* The function in the preloaded library, or NULL. Through the global offset table: in an executable at
 * a fixed address the linker would make a plain weak reference NULL for good. */
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

/* Macros, not inline functions: the place that locktop shows is the line of the caller. */
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
 * What a lock of any kind (a pthread_mutex_t, a std::mutex, a semaphore, one of the program's own) is
 * called. The name is copied; NULL takes it back. Give it after the lock was initialised: to
 * initialise or destroy a lock ends its name. */
#define locktop_name(lock, name)                                                                   \
    LOCKTOP_CALL2("locktop_name", const void *, lock, const char *, name)

/* void locktop_mark(const char *text)
 *
 * A mark on the timeline of the calling thread: "reload begins". */
#define locktop_mark(text) LOCKTOP_CALL1("locktop_mark", const char *, text)

/* void locktop_acquire(const void *lock), and so on
 *
 * A lock of the program's own, known by its address. `_shared`: for readers, who do not
 * exclude each other.
 *
 * Call acquire before each attempt that may wait, or only when it has to: locktop counts it as
 * contended where another thread held the lock meanwhile, else as free. It must be followed by
 * acquired or gave_up on the same thread. For an attempt that does not wait (a trylock), acquired or
 * gave_up alone. Call released right after the lock was released, on the thread that had it. */
#define locktop_acquire(lock)         LOCKTOP_CALL1("locktop_acquire", const void *, lock)
#define locktop_acquire_shared(lock)  LOCKTOP_CALL1("locktop_acquire_shared", const void *, lock)
#define locktop_acquired(lock)        LOCKTOP_CALL1("locktop_acquired", const void *, lock)
#define locktop_acquired_shared(lock) LOCKTOP_CALL1("locktop_acquired_shared", const void *, lock)
#define locktop_gave_up(lock)         LOCKTOP_CALL1("locktop_gave_up", const void *, lock)
#define locktop_released(lock)        LOCKTOP_CALL1("locktop_released", const void *, lock)

/* void locktop_forget(const void *lock)
 *
 * Its address will be something else's: forgets its name, and the lock if it is the program's own. */
#define locktop_forget(lock) LOCKTOP_CALL1("locktop_forget", const void *, lock)

#ifdef __cplusplus

namespace locktop
{

namespace detail
{
/* lock() may throw. */
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

/* Like std::lock_guard, for a lock of the program's own: anything with lock() and unlock(). What
 * the preloaded library sees by itself (a std::mutex) would be counted twice. */
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

/* A name that lasts as long as this does: a member next to the lock, after it. */
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
