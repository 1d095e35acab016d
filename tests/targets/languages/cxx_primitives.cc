// Locks of the C++ library: cxx_primitives mutex|shared|semaphore|atomic. Threads add up under the
// primitive. Then the first thread holds the primitive and a second thread waits. Says {"sum": ...,
// "address": ..., "waiter": tid} before the second thread continues, and "ok" when all has ended
// well.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

// The library's semaphore yields before it sleeps: on a busy machine each round takes long.
constexpr int threads = 4, rounds = 400;
std::mutex g_mutex;
std::shared_mutex g_shared;
std::counting_semaphore<1> g_semaphore{1};
std::atomic<int> g_taken{0};

// A lock made of atomic::wait: the threads wait for the number.
struct Waiting {
    void lock()
    {
        while (g_taken.exchange(1, std::memory_order_acquire))
            g_taken.wait(1);
    }
    void unlock()
    {
        g_taken.store(0, std::memory_order_release);
        g_taken.notify_one();
    }
} g_waiting;

struct Semaphore {
    void lock()
    {
        g_semaphore.acquire();
    }
    void unlock()
    {
        g_semaphore.release();
    }
} g_guard;

void say(const char *line)
{
    std::printf("%s\n", line);
    std::fflush(stdout);
}

template <typename Lock> long add_up(Lock &lock)
{
    long sum = 0;
    std::vector<std::thread> adders;
    for (int i = 0; i < threads; i++)
        adders.emplace_back([&] {
            for (int round = 0; round < rounds; round++) {
                std::lock_guard guard{lock};
                long seen = sum;
                if (round % 16 == 0)
                    std::this_thread::yield(); // so that the other threads meet the held lock
                sum = seen + 1;
            }
        });
    for (auto &adder : adders)
        adder.join();
    return sum;
}

template <typename Lock> int run(Lock &lock, const void *address)
{
    char text[120];
    long sum = add_up(lock);
    std::atomic<long> waiter{0};
    lock.lock();
    std::thread second{[&] {
        waiter = syscall(SYS_gettid);
        std::lock_guard guard{lock};
        sum++;
    }};
    while (!waiter)
        std::this_thread::yield();
    std::snprintf(text, sizeof text, "{\"sum\": %ld, \"address\": \"%p\", \"waiter\": %ld}", sum,
                  address, waiter.load());
    say(text);
    std::getchar();
    lock.unlock();
    second.join();
    bool good = sum == threads * rounds + 1;
    say(good ? "ok" : "failed");
    return !good;
}

} // namespace

int main(int, char **argv)
{
    if (!std::strcmp(argv[1], "mutex"))
        return run(g_mutex, &g_mutex);
    if (!std::strcmp(argv[1], "shared"))
        return run(g_shared, &g_shared);
    if (!std::strcmp(argv[1], "semaphore"))
        return run(g_guard, &g_semaphore);
    return run(g_waiting, &g_taken);
}
