// Mutexes of a class of the program's own. The constructor makes the call that initialises them.
// Two types have such a mutex, and there are many objects of each type. Two threads take the
// mutexes of different objects.
//
//   different   A cache's mutex is taken before the log's, a queue's after the log's.
//
//   inverted    A cache's mutex is taken before a queue's, another queue's before another cache's.
//
// Says "ok" when both threads have done so.
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "../target.h"

namespace port
{

class Mutex
{
  public:
    KEPT Mutex()
    {
        pthread_mutex_init(&mutex_, nullptr);
        used_ = 0;
    }

    KEPT void Lock()
    {
        pthread_mutex_lock(&mutex_);
        used_ = used_ + 1;
    }

    void Unlock()
    {
        pthread_mutex_unlock(&mutex_);
    }

  private:
    pthread_mutex_t mutex_;
    volatile int used_;
};

} // namespace port

struct Cache {
    port::Mutex mutex;
    volatile int size;
    KEPT Cache()
    {
        size = 0;
    }
};

struct Queue {
    port::Mutex mutex;
    volatile int size;
    KEPT Queue()
    {
        size = 0;
    }
};

static constexpr int objects = 8;
static std::vector<std::unique_ptr<Cache>> caches;
static std::vector<std::unique_ptr<Queue>> queues;
static port::Mutex g_log;
static bool inverts;
static std::atomic<int> turn;

KEPT static void both(port::Mutex &first, port::Mutex &second)
{
    first.Lock();
    second.Lock();
    second.Unlock();
    first.Unlock();
}

// Both threads live at one time: else their orders could not meet.
static void wait_for(int number)
{
    while (turn != number)
        std::this_thread::yield();
}

static void store()
{
    both(caches[1]->mutex, inverts ? queues[1]->mutex : g_log);
    turn = 1;
    wait_for(2);
}

static void drain()
{
    wait_for(1);
    both(inverts ? queues[2]->mutex : g_log, inverts ? caches[2]->mutex : queues[2]->mutex);
    turn = 2;
}

int main(int argc, char **argv)
{
    inverts = argc > 1 && std::strcmp(argv[1], "inverted") == 0;
    for (int i = 0; i < objects; i++) {
        caches.push_back(std::make_unique<Cache>());
        queues.push_back(std::make_unique<Queue>());
        caches[i]->mutex.Lock();
        caches[i]->mutex.Unlock();
        queues[i]->mutex.Lock();
        queues[i]->mutex.Unlock();
    }
    std::thread first(store), second(drain);
    first.join();
    second.join();
    say("ok");
    hear();
}
