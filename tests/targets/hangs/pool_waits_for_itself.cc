// Each task of a thread pool waits for a task behind it in the queue of the same pool.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include <unistd.h>

namespace
{

constexpr int WORKERS = 4;

class Pool
{
  public:
    Pool()
    {
        for (int number = 0; number < WORKERS; number++)
            workers_.emplace_back([this] { run(); });
    }
    template <class Task> std::future<int> submit(Task task)
    {
        auto packed = std::make_shared<std::packaged_task<int()>>(task);
        std::lock_guard guard(mutex_);
        tasks_.push([packed] { (*packed)(); });
        changed_.notify_one();
        return packed->get_future();
    }

  private:
    void run()
    {
        for (;;) {
            std::unique_lock guard(mutex_);
            changed_.wait(guard, [this] { return !tasks_.empty(); });
            auto task = std::move(tasks_.front());
            tasks_.pop();
            guard.unlock();
            task();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::queue<std::function<void()>> tasks_;
    std::vector<std::thread> workers_;
};

Pool *g_pool;
std::atomic<int> g_begun{0};

[[gnu::noinline]] int count_rows(int table)
{
    g_begun++;
    while (g_begun < WORKERS)
        usleep(1000); // until each worker has a task
    return g_pool->submit([table] { return table * 100; }).get();
}

} // namespace

int main()
{
    g_pool = new Pool;
    std::vector<std::future<int>> counts;
    for (int table = 0; table < WORKERS; table++)
        counts.push_back(g_pool->submit([table] { return count_rows(table); }));
    (void)!write(1, "ready\n", 6);
    return counts.front().get();
}
