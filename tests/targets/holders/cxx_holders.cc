/* Holders of C++ locks that name no holder, one behaviour a scenario: cxx_holders SCENARIO.
 *
 * -DLOCKS_OF_LIBRARY chooses the locks, see locks_of_libraries.h. Says {"waiters": {tid: [tids of
 * the holders]}} when all waiters sleep, and ends with its stdin.
 */
#include "locks_of_libraries.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace
{

// ---- what every scenario uses ----

class Tids
{
  public:
    void add()
    {
        tids[count++] = syscall(SYS_gettid);
    }
    // Waits for `wanted` threads; returns their tids.
    std::vector<long> all(int wanted) const
    {
        for (int index = 0; index < wanted; index++)
            while (!tids[index])
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return {tids, tids + wanted};
    }
    int size() const
    {
        return count;
    }

  private:
    std::atomic<int> count{0};
    std::atomic<long> tids[64]{};
};

Tids holders, onlookers, waiters;
int arguments;

__attribute__((noinline)) void sleep_for_ever()
{
    int ends[2];
    char byte;
    if (pipe(ends) || read(ends[0], &byte, 1))
        std::abort();
}

// Called with the lock held.
void hold()
{
    holders.add();
    sleep_for_ever();
}

// Called without the lock.
void sleep_without_lock()
{
    onlookers.add();
    sleep_for_ever();
}

template <typename Function> void start(Function run)
{
    std::thread(std::move(run)).detach();
}

template <typename Function> void start_waiter(Function run)
{
    int before = waiters.size();
    start([run = std::move(run)]() mutable {
        waiters.add();
        run();
        std::puts("a waiter got the lock");
    });
    waiters.all(before + 1);
}

template <typename Condition> void await_call(long tid, Condition is_so)
{
    std::string call;
    do {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::getline(std::ifstream("/proc/self/task/" + std::to_string(tid) + "/syscall"), call);
    } while (!is_so(call));
}

using Truth = std::vector<std::pair<long, std::vector<long>>>;

void say_all(const Truth &truth)
{
    std::string text;
    for (const auto &[waiter, tids] : truth) {
        await_call(waiter, [](const std::string &call) { return call.rfind("202 ", 0) == 0; });
        text += (text.empty() ? "\"" : ", \"") + std::to_string(waiter) + "\": [";
        for (long tid : tids) {
            await_call(tid, [](const std::string &call) { return call != "running"; });
            text += (text.back() == '[' ? "" : ", ") + std::to_string(tid);
        }
        text += "]";
    }
    std::printf("{\"waiters\": {%s}}\n", text.c_str());
    std::fflush(stdout);
    std::getchar();
    std::_Exit(0);
}

// Says that all waiters wait for all holders.
void say(const std::vector<long> &tids)
{
    Truth truth;
    for (long waiter : waiters.all(waiters.size()))
        truth.emplace_back(waiter, tids);
    say_all(truth);
}

struct Shared {
    Lock lock;
    long value = 1;
};
using SharedPointer = std::shared_ptr<Shared>;

void wait_for(SharedPointer shared)
{
    start_waiter([shared] {
        Guard guard(&shared->lock);
        shared->value++;
    });
}

// Starts threads that have a reference to the lock, sleep, and would take it afterwards.
void start_onlookers(SharedPointer shared, int count)
{
    int before = onlookers.size();
    for (int index = 0; index < count; index++)
        start([shared] {
            sleep_without_lock();
            Guard guard(&shared->lock);
            shared->value++;
        });
    onlookers.all(before + count);
}

// Runs a holder, two that look on, and a waiter.
template <typename Function> void usual(Function holder)
{
    auto shared = std::make_shared<Shared>();
    start([shared, holder] { holder(shared); });
    auto tids = holders.all(1);
    start_onlookers(shared, 2);
    wait_for(shared);
    say(tids);
}

// ---- the scenarios ----

void plain()
{
    usual([](SharedPointer shared) {
        Guard guard(&shared->lock);
        hold();
        shared->value++;
    });
}

void without_guard()
{
    usual([](SharedPointer shared) {
        take(shared->lock);
        hold();
        shared->value++;
        give(shared->lock);
        std::puts("given");
    });
}

__attribute__((noinline)) size_t deeper(int depth, const std::string &text)
{
    if (depth == 0) {
        hold();
        return text.size();
    }
    return deeper(depth - 1, text) + 1;
}

void deep_in_calls()
{
    usual([](SharedPointer shared) {
        Guard guard(&shared->lock);
        std::printf("%zu\n", deeper(12, "text"));
    });
}

template <typename Work> __attribute__((noinline)) long with_lock(Shared &shared, Work work)
{
    Guard guard(&shared.lock);
    return work(shared.value);
}

void in_closure()
{
    usual([](SharedPointer shared) {
        std::function<long(long &)> work = [](long &value) {
            hold();
            return ++value;
        };
        std::printf("%ld\n", with_lock(*shared, work));
    });
}

struct Work {
    virtual ~Work() = default;
    virtual long work() = 0;
};

struct Worker : Work {
    std::string name;
    Guard guard;
    Shared &shared;
    Worker(std::string name, Shared &shared)
        : name(std::move(name)), guard(&shared.lock), shared(shared)
    {
    }
    long work() override
    {
        hold();
        return shared.value += static_cast<long>(name.size());
    }
};

__attribute__((noinline)) std::unique_ptr<Work> make_worker(Shared &shared)
{
    return std::make_unique<Worker>("worker", shared);
}

void behind_virtual_function()
{
    usual([](SharedPointer shared) {
        auto worker = make_worker(*shared);
        std::printf("%ld\n", worker->work());
    });
}

void guard_in_struct()
{
    usual([](SharedPointer shared) {
        Worker worker("session", *shared);
        worker.work();
    });
}

void guard_on_heap()
{
    usual([](SharedPointer shared) {
        auto guard = std::make_unique<Guard>(&shared->lock);
        hold();
        shared->value++;
    });
}

void guard_in_shared_pointer()
{
    usual([](SharedPointer shared) {
        auto guard = std::make_shared<Guard>(&shared->lock);
        auto second = guard;
        hold();
        shared->value++;
    });
}

using GuardPointer = std::unique_ptr<Guard>;

__attribute__((noinline)) GuardPointer opened(Shared &shared)
{
    auto guard = std::make_unique<Guard>(&shared.lock);
    if (shared.value == 77)
        throw std::runtime_error("closed");
    return guard;
}

void guard_returned()
{
    usual([](SharedPointer shared) {
        try {
            auto guard = opened(*shared);
            hold();
            shared->value++;
        } catch (const std::exception &error) {
            std::puts(error.what());
        }
    });
}

void guard_moved_to_thread()
{
    auto shared = std::make_shared<Shared>();
    start([shared] {
        auto guard = std::make_unique<Guard>(&shared->lock);
        start([shared, guard = std::move(guard)] {
            hold();
            shared->value++;
        });
        sleep_without_lock();
        Guard again(&shared->lock);
    });
    auto tids = holders.all(1);
    onlookers.all(1);
    wait_for(shared);
    say(tids);
}

Lock global_lock;
long global_value;

__attribute__((noinline)) void lock_all()
{
    take(global_lock);
}
__attribute__((noinline)) void unlock_all()
{
    give(global_lock);
}

void static_lock()
{
    start([] {
        lock_all();
        hold();
        global_value++;
        unlock_all();
        std::puts("unlocked");
    });
    auto tids = holders.all(1);
    for (int index = 0; index < 2; index++)
        start([] {
            sleep_without_lock();
            lock_all();
            global_value++;
            unlock_all();
        });
    onlookers.all(2);
    start_waiter([] {
        lock_all();
        unlock_all();
    });
    say(tids);
}

class Server
{
  public:
    __attribute__((noinline)) size_t serve()
    {
        Guard guard(&jobs_lock);
        pause();
        return jobs.size();
    }
    __attribute__((noinline)) void pause()
    {
        hold();
    }
    __attribute__((noinline)) size_t accept()
    {
        Guard guard(&clients_lock);
        sleep_without_lock();
        return name.size();
    }
    __attribute__((noinline)) size_t count()
    {
        sleep_without_lock();
        Guard guard(&jobs_lock);
        return jobs.size();
    }

  private:
    Lock jobs_lock;
    std::vector<int> jobs{1};
    std::string name = "server";
    Lock clients_lock;
};

void first_field_of_shared_object()
{
    auto server = std::make_shared<Server>();
    start([server] { std::printf("%zu\n", server->serve()); });
    auto tids = holders.all(1);
    start([server] { std::printf("%zu\n", server->accept()); });
    start([server] { std::printf("%zu\n", server->count()); });
    onlookers.all(2);
    start_waiter([server] { server->serve(); });
    say(tids);
}

void one_of_many_locks()
{
    auto locks = std::make_shared<std::vector<Shared>>(8);
    for (int index = 0; index < 8; index++)
        start([locks, index] {
            Guard guard(&(*locks)[index].lock);
            index == 3 ? hold() : sleep_without_lock();
            (*locks)[index].value++;
        });
    auto tids = holders.all(1);
    onlookers.all(7);
    start_waiter([locks] { Guard guard(&(*locks)[3].lock); });
    say(tids);
}

// The guard is dropped on some ways and not on others.
void optional_guard()
{
    bool is_early = arguments > 5;
    usual([is_early](SharedPointer shared) {
        std::optional<Guard> guard;
        guard.emplace(&shared->lock);
        if (is_early) {
            guard.reset();
            sleep_without_lock();
        } else {
            hold();
        }
        shared->value++;
    });
}

// The onlooker has dropped its guard early; its flag tells that it has.
void onlooker_dropped_early()
{
    bool is_early = arguments < 5;
    auto shared = std::make_shared<Shared>();
    start([shared, is_early] {
        std::optional<Guard> guard;
        guard.emplace(&shared->lock);
        if (is_early)
            guard.reset();
        sleep_without_lock();
        std::puts("early");
    });
    onlookers.all(1);
    start([shared] {
        Guard guard(&shared->lock);
        hold();
    });
    auto tids = holders.all(1);
    wait_for(shared);
    say(tids);
}

struct Lease {
    Lock *lock;
    bool is_held = true;
    explicit Lease(Lock *lock) : lock(lock)
    {
        take(*lock);
    }
    void end()
    {
        if (is_held)
            give(*lock);
        is_held = false;
    }
    ~Lease()
    {
        end();
    }
};

__attribute__((noinline)) void end_lease(Lease &lease)
{
    lease.end();
}

// Onlookers have ended their guards on the heap, here or in a function.
void onlookers_ended_leases()
{
    auto shared = std::make_shared<Shared>();
    start([shared] {
        auto lease = std::make_unique<Lease>(&shared->lock);
        lease->end();
        sleep_without_lock();
        shared->value++;
    });
    onlookers.all(1);
    start([shared] {
        auto lease = std::make_unique<Lease>(&shared->lock);
        end_lease(*lease);
        sleep_without_lock();
        shared->value++;
    });
    onlookers.all(2);
    start([shared] {
        auto lease = std::make_unique<Lease>(&shared->lock);
        hold();
        shared->value++;
    });
    auto tids = holders.all(1);
    wait_for(shared);
    say(tids);
}

struct Context {
    Lock *held = nullptr;
};

thread_local Context thread_context;

__attribute__((noipa)) Context *context()
{
    return &thread_context;
}

__attribute__((noinline)) void release_and_sleep()
{
    give(*context()->held);
    context()->held = nullptr;
    sleep_without_lock();
}

// The onlooker has released the lock in a function that finds its context by itself.
void onlooker_with_context()
{
    auto shared = std::make_shared<Shared>();
    start([shared] {
        Context *mine = context();
        mine->held = &shared->lock;
        take(shared->lock);
        release_and_sleep();
        if (mine->held)
            give(*mine->held);
    });
    onlookers.all(1);
    start([shared] {
        Guard guard(&shared->lock);
        hold();
        shared->value++;
    });
    auto tids = holders.all(1);
    wait_for(shared);
    say(tids);
}

// Onlookers used the lock before, in the frames in which they sleep now.
void onlookers_that_used_it()
{
    auto shared = std::make_shared<Shared>();
    for (int index = 0; index < 6; index++)
        start([shared] {
            for (;;) {
                {
                    Guard guard(&shared->lock);
                    shared->value++;
                }
                sleep_without_lock();
            }
        });
    onlookers.all(6);
    start([shared] {
        for (;;) {
            Guard guard(&shared->lock);
            shared->value++;
            hold();
        }
    });
    auto tids = holders.all(1);
    wait_for(shared);
    say(tids);
}

// The holder sleeps at a condition variable with another mutex.
void holder_at_condition()
{
    usual([](SharedPointer shared) {
        Guard guard(&shared->lock);
        std::mutex other;
        std::condition_variable condition;
        std::atomic<bool> is_ready = false; // the compiler must not know that nobody sets it
        std::unique_lock<std::mutex> lock(other);
        holders.add();
        condition.wait(lock, [&is_ready] { return is_ready.load(); });
        shared->value++;
    });
}

// A pool of idle threads, each with a reference to the lock, beside the holder.
void idle_pool()
{
    auto shared = std::make_shared<Shared>();
    static std::mutex mutex;
    static std::condition_variable condition;
    static std::vector<std::function<void()>> jobs;
    for (int index = 0; index < 8; index++)
        start([shared] {
            for (;;) {
                std::unique_lock<std::mutex> lock(mutex);
                onlookers.add();
                condition.wait(lock, [] { return !jobs.empty(); });
                auto job = std::move(jobs.back());
                jobs.pop_back();
                lock.unlock();
                Guard guard(&shared->lock);
                job();
            }
        });
    onlookers.all(8);
    start([shared] {
        Guard guard(&shared->lock);
        hold();
    });
    auto tids = holders.all(1);
    wait_for(shared);
    say(tids);
}

void holder_in_nanosleep()
{
    usual([](SharedPointer shared) {
        Guard guard(&shared->lock);
        holders.add();
        std::this_thread::sleep_for(std::chrono::hours(1));
        shared->value++;
    });
}

// The holder waits for a second lock, which another thread has.
void holder_waits_for_other_lock()
{
    auto first = std::make_shared<Shared>(), second = std::make_shared<Shared>();
    start([second] {
        Guard guard(&second->lock);
        hold();
        second->value++;
    });
    auto of_second = holders.all(1);
    start_waiter([first, second] {
        Guard one(&first->lock);
        holders.add();
        Guard two(&second->lock);
        first->value += second->value;
    });
    std::vector<long> of_first{holders.all(2)[1]};
    wait_for(first);
    auto tids = waiters.all(2);
    say_all({{tids[0], of_second}, {tids[1], of_first}});
}

// Threads used an earlier lock at the same address and sleep in the same frames.
void recycled_address()
{
    static void *memory = std::malloc(sizeof(Lock));
    auto *earlier = new (memory) Lock;
    for (int index = 0; index < 4; index++)
        start([earlier] {
            {
                Guard guard(earlier);
                global_value++;
            }
            sleep_without_lock();
        });
    onlookers.all(4);
    earlier->~Lock();
    auto *lock = new (memory) Lock;
    start([lock] {
        Guard guard(lock);
        hold();
        global_value++;
    });
    auto tids = holders.all(1);
    start_waiter([lock] { Guard guard(lock); });
    say(tids);
}

void holder_catches_exceptions()
{
    usual([](SharedPointer shared) {
        try {
            Guard guard(&shared->lock);
            hold();
            if (++shared->value == 5)
                throw std::runtime_error("five");
        } catch (const std::exception &error) {
            std::puts(error.what());
        }
    });
}

// All locks of a table are held, with their guards in a vector.
void guards_in_vector()
{
    auto locks = std::make_shared<std::vector<Shared>>(8);
    start([locks] {
        std::vector<GuardPointer> guards;
        for (auto &shared : *locks)
            guards.push_back(std::make_unique<Guard>(&shared.lock));
        hold();
        std::printf("%zu\n", guards.size());
    });
    auto tids = holders.all(1);
    for (int index = 0; index < 3; index++)
        start([locks, index] {
            sleep_without_lock();
            Guard guard(&(*locks)[index].lock);
        });
    onlookers.all(3);
    start_waiter([locks] { Guard guard(&(*locks)[5].lock); });
    say(tids);
}

// The holder releases the lock behind a switch with many cases.
void released_behind_switch()
{
    long choice = arguments;
    usual([choice](SharedPointer shared) {
        take(shared->lock);
        hold();
        std::string text;
        switch (shared->value + choice) {
        case 3: text = "three"; break;
        case 4: text = std::to_string(choice); break;
        case 5: text = std::string(static_cast<size_t>(choice), 'x'); break;
        case 6: text = "six of them"; break;
        case 7: text += "seven"; break;
        default: text = "many";
        }
        shared->value += static_cast<long>(text.size());
        give(shared->lock);
        std::puts(text.c_str());
        take(shared->lock);
        give(shared->lock);
    });
}

// ---- deadlocks ----

void cross(size_t count)
{
    auto locks = std::make_shared<std::vector<Shared>>(count);
    for (size_t index = 0; index < count; index++)
        start_waiter([locks, index] {
            Guard first(&(*locks)[index].lock);
            holders.add();
            holders.all(static_cast<int>(locks->size()));
            Guard second(&(*locks)[(index + 1) % locks->size()].lock);
            (*locks)[index].value++;
        });
    auto tids = waiters.all(static_cast<int>(count));
    Truth truth;
    for (size_t index = 0; index < count; index++)
        truth.push_back({tids[index], {tids[(index + 1) % count]}});
    say_all(truth);
}

void deadlock_of_two()
{
    cross(2);
}

void deadlock_of_three()
{
    cross(3);
}

#define SCENARIO(name) {#name, name}

const std::pair<const char *, void (*)()> SCENARIOS[] = {
    SCENARIO(plain),
    SCENARIO(without_guard),
    SCENARIO(deep_in_calls),
    SCENARIO(in_closure),
    SCENARIO(behind_virtual_function),
    SCENARIO(guard_in_struct),
    SCENARIO(guard_on_heap),
    SCENARIO(guard_in_shared_pointer),
    SCENARIO(guard_returned),
    SCENARIO(guard_moved_to_thread),
    SCENARIO(static_lock),
    SCENARIO(first_field_of_shared_object),
    SCENARIO(one_of_many_locks),
    SCENARIO(optional_guard),
    SCENARIO(onlooker_dropped_early),
    SCENARIO(onlookers_ended_leases),
    SCENARIO(onlooker_with_context),
    SCENARIO(onlookers_that_used_it),
    SCENARIO(holder_at_condition),
    SCENARIO(idle_pool),
    SCENARIO(holder_in_nanosleep),
    SCENARIO(holder_waits_for_other_lock),
    SCENARIO(recycled_address),
    SCENARIO(holder_catches_exceptions),
    SCENARIO(guards_in_vector),
    SCENARIO(released_behind_switch),
    SCENARIO(deadlock_of_two),
    SCENARIO(deadlock_of_three),
};

} // namespace

int main(int argc, char **argv)
{
    arguments = argc;
#ifdef LOCKS_OF_ABSL
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
    for (const auto &[name, run] : SCENARIOS) {
        if (argc < 2)
            std::puts(name);
        else if (!std::strcmp(argv[1], name))
            run();
    }
}
