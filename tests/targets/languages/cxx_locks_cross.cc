/* Two threads cross on two locks of the C++ library: cxx_locks_cross
 * mutex|timed|recursive|recursive_timed|shared|reads|gives_up|together.
 *
 *     reads     one thread reads what the other thread wants to write
 *     gives_up  one wait has a timeout
 *     together  each thread takes both locks at once, which cannot deadlock: the first thread has
 *               both locks, and the second thread waits
 *
 * Says {"first": tid, "second": tid, "locks": [address, address]} when each thread has its locks.
 */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace
{

std::atomic<int> have{0};
std::atomic<long> tids[2];

void meet()
{
    have++;
    while (have < 2)
        std::this_thread::yield();
}

// `crosses` takes one lock and then wants the other.
template <typename First, typename Second>
__attribute__((noinline)) void crosses(First first, Second second)
{
    first();
    meet();
    second();
    std::puts("it was no deadlock");
}

template <typename Lock> struct Pair {
    Lock one, other;
};

template <typename Lock, typename A, typename B> int run(Pair<Lock> &locks, A first, B second)
{
    std::thread threads[] = {std::thread{[&] {
                                 tids[0] = syscall(SYS_gettid);
                                 first();
                             }},
                             std::thread{[&] {
                                 tids[1] = syscall(SYS_gettid);
                                 second();
                             }}};
    while (!tids[0] || !tids[1] || have < 2)
        std::this_thread::yield();
    std::printf("{\"first\": %ld, \"second\": %ld, \"locks\": [\"%p\", \"%p\"]}\n", tids[0].load(),
                tids[1].load(), static_cast<void *>(&locks.one), static_cast<void *>(&locks.other));
    std::fflush(stdout);
    for (auto &thread : threads)
        thread.detach();
    std::getchar();
    std::_Exit(0);
}

template <typename Lock> int cross()
{
    static Pair<Lock> locks;
    return run(
        locks, [] { crosses([] { locks.one.lock(); }, [] { locks.other.lock(); }); },
        [] { crosses([] { locks.other.lock(); }, [] { locks.one.lock(); }); });
}

int reads()
{
    static Pair<std::shared_mutex> locks;
    return run(
        locks, [] { crosses([] { locks.one.lock_shared(); }, [] { locks.other.lock(); }); },
        [] { crosses([] { locks.other.lock(); }, [] { locks.one.lock(); }); });
}

int gives_up()
{
    static Pair<std::timed_mutex> locks;
    return run(
        locks, [] { crosses([] { locks.one.lock(); }, [] { locks.other.lock(); }); },
        [] {
            crosses([] { locks.other.lock(); },
                    [] { static_cast<void>(locks.one.try_lock_for(std::chrono::hours{1})); });
        });
}

int together()
{
    static Pair<std::mutex> locks;
    return run(
        locks,
        [] {
            std::scoped_lock both{locks.one, locks.other};
            meet();
            pause();
        },
        [] {
            while (!have)
                std::this_thread::yield();
            meet();
            crosses([] {}, [] { std::scoped_lock both{locks.other, locks.one}; });
        });
}

} // namespace

int main(int, char **argv)
{
    const char *way = argv[1];
    if (!std::strcmp(way, "mutex"))
        return cross<std::mutex>();
    if (!std::strcmp(way, "timed"))
        return cross<std::timed_mutex>();
    if (!std::strcmp(way, "recursive"))
        return cross<std::recursive_mutex>();
    if (!std::strcmp(way, "recursive_timed"))
        return cross<std::recursive_timed_mutex>();
    if (!std::strcmp(way, "shared"))
        return cross<std::shared_mutex>();
    if (!std::strcmp(way, "reads"))
        return reads();
    return std::strcmp(way, "gives_up") ? together() : gives_up();
}
