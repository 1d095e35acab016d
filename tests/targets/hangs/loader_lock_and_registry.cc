// A thread holds the lock of the loader, and wants a mutex: dlopen() runs the constructor of a
// plugin. Another thread holds the mutex, and its first use of a thread_local wants the loader's
// lock.
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static std::mutex g_registry_lock;
static std::vector<std::string> g_tags;
static std::atomic<int> g_phase{0};

// The plugin calls this.
void register_tag(const char *name)
{
    g_phase = 2;
    std::lock_guard guard(g_registry_lock);
    g_tags.push_back(name);
}

namespace
{

struct Scratch {
    char *text;
    Scratch() : text(new char[64])
    {
    }
    ~Scratch()
    {
        delete[] text;
    }
};
thread_local Scratch t_scratch;

[[gnu::noinline]] void match_tag()
{
    std::lock_guard guard(g_registry_lock);
    g_phase = 1;
    while (g_phase != 2)
        usleep(1000);
    t_scratch.text[0] = 1;
}

[[gnu::noinline]] void net_worker()
{
    pthread_setname_np(pthread_self(), "net-worker");
    match_tag();
}

[[gnu::noinline]] void load_plugins(const char *file)
{
    dlopen(file, RTLD_NOW);
}

} // namespace

int main(int, char **arguments)
{
    std::thread worker(net_worker);
    while (g_phase != 1)
        usleep(1000);
    (void)!write(1, "ready\n", 6);
    load_plugins(arguments[1]);
    worker.join();
}
