/* Healthy threads that hold the locks of a library for seconds: cxx_healthy.
 *
 * -DLOCKS_OF_LIBRARY chooses the locks, see locks_of_libraries.h. Threads take locks in one order,
 * locks are made again at the same address, and signals go back and forth over two locks of which
 * nobody is the holder. Says "ready", and ends with its stdin.
 */
#include "locks_of_libraries.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <thread>

namespace
{

Lock locks[4];
long value;

void sleep_some(std::mt19937 &random)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 3000));
}

template <typename Function> void start(Function run)
{
    std::thread(std::move(run)).detach();
}

// Takes the locks from `first` on, each inside the one before.
__attribute__((noinline)) void nest(int first, int last, std::mt19937 &random)
{
    if (first > last)
        return;
    Guard guard(&locks[first]);
    sleep_some(random);
    nest(first + 1 + static_cast<int>(random() % 2), last, random);
    value++;
}

void start_nesting(unsigned seed)
{
    start([seed] {
        for (std::mt19937 random(seed);;)
            nest(static_cast<int>(random() % 4), 3, random);
    });
}

// Uses locks that lie at the same address one after the other.
void start_reuse(unsigned seed)
{
    start([seed] {
        std::mt19937 random(seed);
        void *memory = std::malloc(sizeof(Lock));
        for (;;) {
            auto *lock = new (memory) Lock;
            {
                Guard guard(lock);
                Guard other(&locks[random() % 4]);
                value++;
            }
            sleep_some(random);
            lock->~Lock();
        }
    });
}

// Waits for a condition with no lock, and takes a lock then.
void start_conditions()
{
    static std::mutex mutex;
    static std::condition_variable condition;
    static int jobs;
    for (int index = 0; index < 3; index++)
        start([index] {
            for (;;) {
                {
                    std::unique_lock<std::mutex> lock(mutex);
                    condition.wait(lock, [] { return jobs > 0; });
                    jobs--;
                }
                Guard guard(&locks[index]);
                value++;
            }
        });
    start([] {
        for (;;) {
            std::this_thread::sleep_for(std::chrono::seconds(2));
            std::lock_guard<std::mutex> lock(mutex);
            jobs += 3;
            condition.notify_all();
        }
    });
}

#ifdef LOCKS_OF_SEMAPHORE
// Each thread waits for the other's signal; a third one begins every few seconds.
void start_signals()
{
    static Lock ping, pong;
    take(ping);
    take(pong);
    start([] {
        for (;;) {
            take(ping);
            value++;
            give(pong);
        }
    });
    start([] {
        for (int count = 0;; count++) {
            take(pong);
            if (count % 3)
                give(ping);
        }
    });
    start([] {
        for (;;) {
            std::this_thread::sleep_for(std::chrono::seconds(4));
            give(ping);
        }
    });
}
#else
void start_signals()
{
}
#endif

} // namespace

int main()
{
#ifdef LOCKS_OF_ABSL
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
    for (unsigned seed = 0; seed < 6; seed++)
        start_nesting(seed);
    start_reuse(7);
    start_reuse(8);
    start_conditions();
    start_signals();
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
    std::_Exit(0);
}
