// Destructors of thread_local objects, at the end of threads, of main and of the process, lock,
// wait and notify. Exceptions pass through waits, also the exception of a cancellation.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

constexpr int Threads = 4, Times = 50;
std::mutex lock;
std::shared_mutex shared;
std::condition_variable cond;
std::condition_variable_any any;
int living, ended, failures;

void check(const char *what, bool holds)
{
    if (holds)
        return;
    failures++;
    std::printf("%s: does not hold\n", what);
}

struct Counted {
    Counted()
    {
        std::lock_guard guard(lock);
        living++;
    }
    ~Counted()
    {
        std::unique_lock guard(lock);
        sched_yield(); // the other threads want the lock
        living--;
        ended++;
        cond.notify_all();
        guard.unlock();
        std::shared_lock reader(shared);
        sched_yield();
    }
    int value = 0;
};

thread_local Counted counted;

void thread_locals()
{
    for (int time = 0; time < Times; time++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < Threads; i++)
            threads.emplace_back([] { counted.value++; });
        for (auto &thread : threads)
            thread.detach(); // main waits for the destructors, not for the threads
        std::unique_lock guard(lock);
        cond.wait(guard, [time] { return ended == (time + 1) * Threads; });
    }
    check("all were destroyed", living == 0);
}

void thrown_from_a_predicate()
{
    try {
        std::unique_lock guard(lock);
        cond.wait(guard, []() -> bool { throw std::runtime_error("from a predicate"); });
        check("was thrown", false);
    } catch (const std::runtime_error &) {
    }
    check("unlocked by the exception", lock.try_lock());
    lock.unlock();
}

// A POSIX cancellation unwinds as an exception, which a handler must rethrow.
void *is_cancelled(void *)
{
    static std::atomic<int> *caught = new std::atomic<int>;
    try {
        std::unique_lock guard(lock);
        for (;;)
            any.wait(guard);
    } catch (...) {
        (*caught)++;
        throw;
    }
    return nullptr;
}

void cancelled_in_a_wait()
{
    pthread_t thread;
    void *result = nullptr;
    pthread_create(&thread, nullptr, is_cancelled, nullptr);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    check("cancelled", result == PTHREAD_CANCELED);
    check("unlocked by the cancellation", lock.try_lock());
    lock.unlock();
}

struct AtExit {
    ~AtExit()
    {
        std::scoped_lock guard(lock, shared);
        std::puts(failures ? "failed" : "ok");
    }
} at_exit;

} // namespace

int main()
{
    thread_locals();
    thrown_from_a_predicate();
    cancelled_in_a_wait();
    counted.value++; // its destructor runs in exit()
    return failures != 0;
}
