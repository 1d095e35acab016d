// Threads that wait in primitives built on futex calls, each in a function with the name of the
// primitive. They are primitives of the C++ library, and an internal lock of the C library. Says
// {"NAME": tid, ...} when all threads are about to wait. Ends with stdin.
#include <atomic>
#include <barrier>
#include <cstdio>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <semaphore>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace
{

std::atomic<int> g_number{0};
std::latch g_latch{1};
std::barrier<> g_barrier{2};
std::counting_semaphore<4> g_semaphore{0};
std::promise<int> g_promise;
std::atomic<int> g_begun{0}, g_made{0};

#define KEPT __attribute__((noinline))

KEPT void say(const std::string &line)
{
    if (write(1, (line + "\n").data(), line.size() + 1) < 0)
        _exit(3);
}

KEPT int hear()
{
    char c;
    while (read(0, &c, 1) == 1)
        continue;
    _exit(0);
}

KEPT int slow()
{
    g_made = 1;
    return hear();
}

KEPT void waits_atomic()
{
    g_number.wait(0);
}

KEPT void waits_latch()
{
    g_latch.wait();
}

KEPT void waits_barrier()
{
    g_barrier.arrive_and_wait();
}

KEPT void waits_semaphore()
{
    g_semaphore.acquire();
}

KEPT void waits_future()
{
    g_promise.get_future().get();
}

KEPT int waits_static()
{
    static int made = slow();
    return made;
}

KEPT void waits_stdio()
{
    fflush(stderr);
}

} // namespace

int main()
{
    std::map<std::string, void (*)()> all{
        {"atomic", waits_atomic},           {"latch", waits_latch},   {"barrier", waits_barrier},
        {"semaphore", waits_semaphore},     {"future", waits_future}, {"stdio", waits_stdio},
        {"static", [] { waits_static(); }},
    };
    std::mutex writing;
    std::string truth;
    flockfile(stderr);
    std::thread([] { waits_static(); }).detach();
    while (!g_made)
        std::this_thread::yield();
    for (auto &[name, run] : all) {
        std::thread([&, name = name, run = run] {
            {
                std::lock_guard guard{writing};
                truth += (truth.empty() ? "{\"" : ", \"") + name +
                         "\": " + std::to_string(syscall(SYS_gettid));
            }
            g_begun++;
            run();
        }).detach();
    }
    while (g_begun < static_cast<int>(all.size()))
        std::this_thread::yield();
    say(truth + "}");
    hear();
}
