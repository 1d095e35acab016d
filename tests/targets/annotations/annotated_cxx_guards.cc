// The C++ side of locktop.h: guards over a lock of the program, and one guard whose scope throws.
// One name ends with its object. Says what the program did, then waits for a line.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "../../../native/include/locktop.h"

struct SpinLock {
    std::atomic<bool> taken{false};
    std::atomic<int> readers{0};
    bool refuses = false;
    void lock()
    {
        if (refuses)
            throw std::runtime_error("refused");
        while (taken.exchange(true, std::memory_order_acquire))
            std::this_thread::yield();
    }
    void unlock()
    {
        taken.store(false, std::memory_order_release);
    }
    void lock_shared()
    {
        readers++;
    }
    void unlock_shared()
    {
        readers--;
    }
};

SpinLock g_guarded;

struct Session {
    std::mutex mutex;
    locktop::named name{&mutex, "Session::mutex"};
};

int main()
{
    for (int i = 0; i < 10; i++)
        locktop::guard<SpinLock> guard(g_guarded);
    for (int i = 0; i < 5; i++)
        locktop::shared_guard<SpinLock> guard(g_guarded);
    g_guarded.refuses = true;
    for (int i = 0; i < 3; i++)
        try {
            locktop::guard<SpinLock> guard(g_guarded);
        } catch (const std::runtime_error &) {
        }
    Session session;
    std::lock_guard<std::mutex> held(session.mutex);
    {
        auto other = new Session;
        other->mutex.lock();
        other->mutex.unlock();
        delete other;
    }
    std::puts("ready");
    std::fflush(stdout);
    return std::getchar() == EOF ? 1 : 0;
}
