/* Waits for locks of TBB and Boost, and idle waits that look like them: cxx_library_waits.
 *
 * Says {"lock": [tids], "work": [tids]} when all of these threads sleep, and ends with its stdin. A
 * worker of TBB's pool may be awake still.
 */
#include <atomic>
#include <boost/thread/condition_variable.hpp>
#include <boost/thread/mutex.hpp>
#include <boost/thread/shared_mutex.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/rw_mutex.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

tbb::mutex tbb_mutex;
tbb::rw_mutex read_by_main, written_by_main;
boost::mutex boost_mutex;
boost::shared_mutex shared_by_main, kept_by_main;
boost::condition_variable condition;
boost::mutex of_condition;
tbb::concurrent_bounded_queue<int> jobs;
std::atomic<bool> is_ready;

void nap()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Starts a thread; returns its tid when it sleeps at a futex.
template <typename Function> long sleeper(Function run)
{
    std::atomic<long> tid{0};
    std::thread([&tid, run] {
        tid = syscall(SYS_gettid);
        run();
    }).detach();
    while (!tid)
        nap();
    std::string call;
    while (call.rfind("202 ", 0) != 0) {
        nap();
        std::getline(std::ifstream("/proc/self/task/" + std::to_string(tid) + "/syscall"), call);
    }
    return tid;
}

// Gives work to TBB's pool until a worker of it has some; returns the worker's tid.
long pool_worker()
{
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 4);
    std::atomic<long> worker{0};
    long main_tid = syscall(SYS_gettid);
    tbb::parallel_for(0, 64, [&](int) {
        long tid = syscall(SYS_gettid);
        if (tid != main_tid)
            worker = tid;
        while (!worker)
            nap();
    });
    return worker;
}

void say(const char *name, const std::vector<long> &tids, const char *end)
{
    std::printf("\"%s\": [", name);
    for (size_t index = 0; index < tids.size(); index++)
        std::printf("%s%ld", index ? ", " : "", tids[index]);
    std::printf("]%s", end);
}

} // namespace

int main()
{
    tbb_mutex.lock();
    read_by_main.lock_shared();
    written_by_main.lock();
    boost_mutex.lock();
    shared_by_main.lock_shared();
    kept_by_main.lock();
    std::vector<long> for_locks{
        sleeper([] { tbb_mutex.lock(); }),
        sleeper([] { read_by_main.lock(); }),
        sleeper([] { written_by_main.lock_shared(); }),
        sleeper([] { boost_mutex.lock(); }),
        sleeper([] { shared_by_main.lock(); }),
        sleeper([] { shared_by_main.lock_shared(); }),
        sleeper([] { kept_by_main.lock_shared(); }),
    };
    std::vector<long> for_work{
        sleeper([] {
            boost::unique_lock<boost::mutex> lock(of_condition);
            condition.wait(lock, [] { return is_ready.load(); });
        }),
        sleeper([] {
            int job;
            jobs.pop(job);
        }),
        pool_worker(),
    };
    std::printf("{");
    say("lock", for_locks, ", ");
    say("work", for_work, "}\n");
    std::fflush(stdout);
    std::getchar();
    std::_Exit(0);
}
