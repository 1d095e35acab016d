// A thread runs the initialiser of a static variable, and wants a mutex there. The holder of the
// mutex wants the variable. The argument "guard" stands for a static variable of a function,
// "call_once" for a std::once_flag. With "other_guard" the thread runs the initialiser of another
// variable. With "other_part" the thread wants the mutex in the function, but in no initialiser. In
// these two cases a third thread runs the initialiser, and sleeps there for ever.
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "../target.h"

namespace
{

std::mutex g_mutex;
std::once_flag g_once;
std::atomic<bool> is_begun, is_held;
std::atomic<int> sleepers;

KEPT int take_mutex()
{
    is_begun = true;
    while (!is_held)
        pause_ms(1);
    std::lock_guard guard(g_mutex);
    return 1;
}

KEPT int sleep_for_ever()
{
    sleepers++;
    for (;;)
        pause();
}

KEPT int &config(int (*load)(), bool logs)
{
    if (logs)
        take_mutex();
    static int value = load();
    return value;
}

KEPT int &theme()
{
    static int value = take_mutex();
    return value;
}

KEPT void load_once()
{
    std::call_once(g_once, take_mutex);
}

KEPT void *initialise(void *how)
{
    if (!strcmp((char *)how, "call_once"))
        load_once();
    else if (!strcmp((char *)how, "other_guard"))
        theme();
    else
        config(take_mutex, !strcmp((char *)how, "other_part"));
    return nullptr;
}

KEPT void *hold(void *how)
{
    while (!is_begun)
        pause_ms(1);
    std::lock_guard guard(g_mutex);
    is_held = true;
    if (!strcmp((char *)how, "call_once"))
        load_once();
    else
        config(take_mutex, false);
    return nullptr;
}

KEPT void *third(void *)
{
    config(sleep_for_ever, false);
    return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
    char *how = argc > 1 ? argv[1] : argv[0];
    if (!strncmp(how, "other", 5)) {
        start(third, nullptr, "third");
        while (!sleepers)
            pause_ms(1);
    }
    start(initialise, how, "initialiser");
    start(hold, how, "holder");
    say("ready");
    hear();
    _exit(0);
}
