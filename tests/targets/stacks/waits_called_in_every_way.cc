// Threads that wait for one lock, each called in another way: `waits_called_in_every_way PLUGIN`,
// where PLUGIN is built from plugin_that_locks.c. Says {"TID": ["innermost function", ...], ...}
// when all threads sleep: the program's own functions on the stack of each thread. Ends with stdin.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "../target.h"

namespace
{

#define WAY extern "C" __attribute__((noinline, used))

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
volatile int work;
// After each call, so that no call is the last operation of a function.
inline void on()
{
    work = work + 1;
}
void (*plugin)(pthread_mutex_t *);

#define TAKE()                                                                                     \
    do {                                                                                           \
        pthread_mutex_lock(&g_lock);                                                               \
        pthread_mutex_unlock(&g_lock);                                                             \
    } while (0)

WAY void plain_inner()
{
    TAKE();
}
WAY void plain_outer()
{
    plain_inner(), on();
}

struct Guard {
    __attribute__((noinline)) ~Guard()
    {
        TAKE();
    }
};
WAY void thrower()
{
    throw 1;
}
WAY void unwinding_inner()
{
    Guard guard;
    thrower();
}
WAY void unwinding_outer()
{
    try {
        unwinding_inner();
    } catch (int) {
        on();
    }
}

WAY void catching_outer()
{
    try {
        thrower();
    } catch (int) {
        TAKE();
    }
    on();
}

WAY void on_signal(int)
{
    TAKE();
}
WAY void raise_with(int flags)
{
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = flags;
    int number = flags ? SIGUSR2 : SIGUSR1;
    sigaction(number, &action, nullptr);
    raise(number);
    on();
}
WAY void signalled_outer()
{
    raise_with(0), on();
}

WAY void other_stack_outer()
{
    stack_t stack = {};
    stack.ss_size = 1 << 18;
    stack.ss_sp =
        mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&stack, nullptr);
    raise_with(SA_ONSTACK);
    on();
}

WAY void plugin_outer()
{
    plugin(&g_lock), on();
}

// A frame whose size is known only at run time.
WAY void sized_inner(unsigned size)
{
    volatile char room[size];
    room[size - 1] = 1;
    plain_inner();
    work = room[size - 1];
}
WAY void sized_outer()
{
    sized_inner(unsigned(work & 1) + 5000), on();
}

WAY void deeper(int times)
{
    if (times > 1)
        deeper(times - 1);
    else
        TAKE();
    on();
}
WAY void deep_outer()
{
    deeper(200), on();
}
WAY void too_deep_outer()
{
    deeper(300), on();
}

struct Way {
    void (*outer)();
    std::vector<std::string> functions;
    int tid;
};
Way ways[] = {
    {plain_outer, {"plain_inner", "plain_outer"}, 0},
    {unwinding_outer, {"Guard::~Guard", "unwinding_inner", "unwinding_outer"}, 0},
    {catching_outer, {"catching_outer"}, 0},
    {signalled_outer, {"on_signal", "raise_with", "signalled_outer"}, 0},
    {other_stack_outer, {"on_signal", "raise_with", "other_stack_outer"}, 0},
    {plugin_outer, {"plugin_works", "plugin_outer"}, 0},
    {sized_outer, {"plain_inner", "sized_inner", "sized_outer"}, 0},
    {deep_outer, std::vector<std::string>(200, "deeper"), 0},
    {too_deep_outer, std::vector<std::string>(256, "deeper"), 0},
};

extern "C" void *enter(void *argument)
{
    Way &way = *static_cast<Way *>(argument);
    __atomic_store_n(&way.tid, own_tid(), __ATOMIC_RELEASE);
    way.outer();
    on();
    return nullptr;
}

} // namespace

int main(int, char **arguments)
{
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    plugin = *static_cast<void (**)(pthread_mutex_t *)>(dlsym(library, "plugin_entry"));
    pthread_mutex_lock(&g_lock);
    ways[7].functions.push_back("deep_outer");
    std::string said = "{";
    for (Way &way : ways) {
        pthread_t thread;
        pthread_create(&thread, nullptr, enter, &way);
        int tid;
        while (!(tid = __atomic_load_n(&way.tid, __ATOMIC_ACQUIRE)) || !is_asleep(tid))
            pause_ms(1);
        if (&way != &ways[8])
            way.functions.push_back("enter");
        said += (said.size() > 1 ? ", \"" : "\"") + std::to_string(tid) + "\": [";
        for (std::string &function : way.functions)
            said += "\"" + function + "\"" + (&function == &way.functions.back() ? "]" : ", ");
    }
    say((said + "}").c_str());
    return std::getchar() == EOF ? 0 : 0;
}
