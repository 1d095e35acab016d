// Threads that sleep while exceptions are in flight. They sleep in a handler, in a destructor
// that an exception runs, and below functions that allocate on the stack. Says {"tids": [...]} when
// all threads sleep.
#include "../target.h"

#include <alloca.h>
#include <atomic>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct Base {
    virtual int sleeps(int n) = 0;
    virtual ~Base() = default;
};

struct Handler : Base {
    int sleeps(int n) override
    {
        try {
            if (n % 2)
                throw std::runtime_error("odd");
            pthread_mutex_lock(&lock);
        } catch (const std::exception &error) {
            std::string text(error.what());
            pthread_mutex_lock(&lock);
            n += (int)text.size();
        }
        pthread_mutex_unlock(&lock);
        return n;
    }
};

struct Takes : Base {
    int sleeps(int n) override
    {
        char *some = (char *)alloca((size_t)n * 10 + 10);
        memset(some, 1, (size_t)n * 10 + 10);
        std::function<int()> last = [&] { return Handler().sleeps(n + some[0]); };
        return last() + some[1];
    }
};

KEPT int calls(Base &base, int n)
{
    std::map<int, std::string> kept{{n, "one"}};
    return base.sleeps(n) + (int)kept.size();
}

struct Guard {
    int n;
    ~Guard()
    {
        if (n >= 4) {
            Handler handler;
            calls(handler, n);
        }
    }
};

KEPT int guarded(int n)
{
    Guard guard{n};
    Takes takes;
    if (n >= 4)
        throw n;
    return calls(takes, n);
}

int main()
{
    std::atomic<int> tids[8] = {};
    std::vector<std::thread> threads;
    pthread_mutex_lock(&lock);
    for (int n = 0; n < 8; n++)
        threads.emplace_back([n, &tids] {
            tids[n] = own_tid();
            try {
                guarded(n);
            } catch (int) {
            }
        });
    std::string truth = "{\"tids\": [";
    for (int n = 0; n < 8; n++) {
        while (!tids[n] || !is_asleep(tids[n]))
            pause_ms(1);
        truth += (n ? ", " : "") + std::to_string(tids[n]);
    }
    say((truth + "]}").c_str());
    hear();
    pthread_mutex_unlock(&lock);
    for (auto &thread : threads)
        thread.join();
    return 0;
}
