/* One lock for each library: Lock, its operations take() and give(), and its own scoped Guard.
 *
 * -DLOCKS_OF_ABSL, _QT, _TBB, _TBB_RW, _BOOST, _SEMAPHORE, _GLIB, _OPENMP, or _FUTEX: a mutex of
 * the program's own, as in "Futexes Are Tricky" by Ulrich Drepper.
 */
#ifndef LOCKS_OF_LIBRARIES_H
#define LOCKS_OF_LIBRARIES_H

#if defined LOCKS_OF_ABSL

#include <absl/synchronization/mutex.h>

using Lock = absl::Mutex;
inline void take(Lock &lock)
{
    lock.Lock();
}
inline void give(Lock &lock)
{
    lock.Unlock();
}
using Guard = absl::MutexLock;

#elif defined LOCKS_OF_QT

#include <QMutex>

using Lock = QMutex;
inline void take(Lock &lock)
{
    lock.lock();
}
inline void give(Lock &lock)
{
    lock.unlock();
}
using Guard = QMutexLocker;

#elif defined LOCKS_OF_TBB

#include <oneapi/tbb/mutex.h>

using Lock = tbb::mutex;
inline void take(Lock &lock)
{
    lock.lock();
}
inline void give(Lock &lock)
{
    lock.unlock();
}
class Guard : public Lock::scoped_lock
{
  public:
    explicit Guard(Lock *lock) : Lock::scoped_lock(*lock)
    {
    }
};

#elif defined LOCKS_OF_TBB_RW

#include <oneapi/tbb/rw_mutex.h>

using Lock = tbb::rw_mutex;
inline void take(Lock &lock)
{
    lock.lock();
}
inline void give(Lock &lock)
{
    lock.unlock();
}
class Guard : public Lock::scoped_lock
{
  public:
    explicit Guard(Lock *lock) : Lock::scoped_lock(*lock)
    {
    }
};

#else

#if defined LOCKS_OF_BOOST

#include <boost/thread/shared_mutex.hpp>

using Lock = boost::shared_mutex;
inline void take(Lock &lock)
{
    lock.lock();
}
inline void give(Lock &lock)
{
    lock.unlock();
}

#elif defined LOCKS_OF_SEMAPHORE

#include <semaphore>

struct Lock {
    std::binary_semaphore unit{1};
};
inline void take(Lock &lock)
{
    lock.unit.acquire();
}
inline void give(Lock &lock)
{
    lock.unit.release();
}

#elif defined LOCKS_OF_GLIB

#include <glib.h>

struct Lock {
    GMutex mutex;
    Lock()
    {
        g_mutex_init(&mutex);
    }
};
inline void take(Lock &lock)
{
    g_mutex_lock(&lock.mutex);
}
inline void give(Lock &lock)
{
    g_mutex_unlock(&lock.mutex);
}

#elif defined LOCKS_OF_OPENMP

#include <omp.h>

struct Lock {
    omp_lock_t lock;
    Lock()
    {
        omp_init_lock(&lock);
    }
};
inline void take(Lock &lock)
{
    omp_set_lock(&lock.lock);
}
inline void give(Lock &lock)
{
    omp_unset_lock(&lock.lock);
}

#else

#include <atomic>
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

class Lock
{
  public:
    void take()
    {
        int value = 0;
        if (word.compare_exchange_strong(value, 1))
            return;
        if (value != 2)
            value = word.exchange(2);
        while (value != 0) {
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
            value = word.exchange(2);
        }
    }
    void give()
    {
        if (word.fetch_sub(1) != 1) {
            word.store(0);
            syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        }
    }

  private:
    std::atomic<int> word{0};
};
inline void take(Lock &lock)
{
    lock.take();
}
inline void give(Lock &lock)
{
    lock.give();
}

#endif

class Guard
{
  public:
    explicit Guard(Lock *lock) : lock(lock)
    {
        take(*lock);
    }
    ~Guard()
    {
        give(*lock);
    }
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

  private:
    Lock *lock;
};

#endif

#endif
