// Five threads wait for a condition variable on their stack, twice with a limit and then without.
// The C++ library destroys each condition with pthread_cond_destroy(), and makes the next one at
// the same address without a call. With the argument "latch", the last wait is for a latch, and all
// conditions are destroyed. The main thread waits for the others. Says "ready" when all sleep.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "../target.h"

namespace
{

constexpr int WORKERS = 5;
std::latch g_latch{1};
int tids[WORKERS];

[[gnu::noinline]] void await_reply(bool has_limit)
{
    std::mutex mutex;
    std::condition_variable reply;
    std::unique_lock<std::mutex> locked(mutex);
    if (has_limit)
        reply.wait_for(locked, std::chrono::milliseconds(1));
    else
        reply.wait(locked);
}

void work(int number, bool last_is_latch)
{
    await_reply(true);
    await_reply(true);
    __atomic_store_n(&tids[number], own_tid(), __ATOMIC_RELEASE);
    if (last_is_latch)
        g_latch.wait();
    else
        await_reply(false);
}

} // namespace

int main(int argc, char **argv)
{
    bool last_is_latch = argc > 1 && std::strcmp(argv[1], "latch") == 0;
    std::vector<std::thread> workers;
    for (int number = 0; number < WORKERS; number++)
        workers.emplace_back(work, number, last_is_latch);
    for (int &tid : tids)
        while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE) || !is_asleep(tid))
            pause_ms(1);
    say("ready");
    for (auto &worker : workers)
        worker.join();
}
