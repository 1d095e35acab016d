// One of four workers ends by an exception. The others wait for it at a barrier.
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <unistd.h>

namespace
{

constexpr int WORKERS = 4;
pthread_barrier_t g_step_barrier;

[[gnu::noinline]] void parse_chunk(int worker, int step)
{
    if (worker == 2 && step == 3)
        throw std::runtime_error("bad row");
}

[[gnu::noinline]] void reduce_columns()
{
    pthread_barrier_wait(&g_step_barrier);
}

void work(int worker)
{
    pthread_setname_np(pthread_self(), ("part-" + std::to_string(worker)).c_str());
    try {
        for (int step = 0;; step++) {
            parse_chunk(worker, step);
            reduce_columns();
        }
    } catch (const std::exception &) {
    }
}

} // namespace

int main()
{
    pthread_barrier_init(&g_step_barrier, nullptr, WORKERS);
    std::vector<std::thread> workers;
    for (int number = 0; number < WORKERS; number++)
        workers.emplace_back(work, number);
    (void)!write(1, "ready\n", 6);
    for (auto &worker : workers)
        worker.join();
}
