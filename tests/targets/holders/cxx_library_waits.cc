/* Waits for locks of TBB and Boost, and idle waits that look like them: cxx_library_waits.
 *
 * Says {"lock": {tid: tid of the holder}, "work": [tids]} when these threads sleep, and ends with
 * its stdin. A worker of TBB's pool may be awake still.
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

namespace
{

tbb::mutex tbb_mutex;
tbb::rw_mutex tbb_read, tbb_written;
boost::mutex boost_mutex;
boost::shared_mutex boost_read, boost_written;
boost::condition_variable condition;
boost::mutex of_condition;
tbb::concurrent_bounded_queue<int> jobs;
std::atomic<bool> is_ready;

void nap()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Starts a thread; returns its tid when it sleeps in a call.
template <typename Function> long sleeper(const char *call, Function run)
{
    std::atomic<long> tid{0};
    std::thread([&tid, run] {
        tid = syscall(SYS_gettid);
        run();
    }).detach();
    while (!tid)
        nap();
    std::string now;
    while (now.rfind(call, 0) != 0) {
        nap();
        std::getline(std::ifstream("/proc/self/task/" + std::to_string(tid) + "/syscall"), now);
    }
    return tid;
}

template <typename Function> long waiter(Function run)
{
    return sleeper("202 ", run); // futex
}

__attribute__((noinline)) void sleep_for_ever()
{
    int ends[2];
    char byte;
    if (pipe(ends) || read(ends[0], &byte, 1))
        std::abort();
}

template <typename Lock> long holder(Lock &lock)
{
    return sleeper("0 ", [&lock] { // read
        lock.lock();
        sleep_for_ever();
        lock.unlock();
    });
}

template <typename Lock> long reader(Lock &lock)
{
    return sleeper("0 ", [&lock] {
        lock.lock_shared();
        sleep_for_ever();
        lock.unlock_shared();
    });
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

template <typename Lock> void say(Lock &lock, long tid_of_holder)
{
    long tid = waiter([&lock] { lock.lock(); });
    std::printf("\"%ld\": %ld, ", tid, tid_of_holder);
}

template <typename Lock> void say_reader(Lock &lock, long tid_of_holder, const char *end)
{
    long tid = waiter([&lock] { lock.lock_shared(); });
    std::printf("\"%ld\": %ld%s", tid, tid_of_holder, end);
}

} // namespace

int main()
{
    std::printf("{\"lock\": {");
    say(tbb_mutex, holder(tbb_mutex));
    long tid = reader(tbb_read);
    say(tbb_read, tid);
    say_reader(tbb_read, tid, ", ");
    say_reader(tbb_written, holder(tbb_written), ", ");
    say(boost_mutex, holder(boost_mutex));
    tid = reader(boost_read);
    say(boost_read, tid);
    say_reader(boost_read, tid, ", ");
    say_reader(boost_written, holder(boost_written), "}, ");
    long at_condition = waiter([] {
        boost::unique_lock<boost::mutex> lock(of_condition);
        condition.wait(lock, [] { return is_ready.load(); });
    });
    long at_queue = waiter([] {
        int job;
        jobs.pop(job);
    });
    std::printf("\"work\": [%ld, %ld, %ld]}\n", at_condition, at_queue, pool_worker());
    std::fflush(stdout);
    std::getchar();
    std::_Exit(0);
}
