// A thread runs the initialiser of a static variable, and wants a mutex there. The holder of the
// mutex wants the variable. The argument "guard" stands for a static variable of a function,
// "call_once" for a std::once_flag. With "inlined" both threads have an own copy of the function,
// with "twice" the initialiser wants its own variable. With "two_guards" the holder runs another
// initialiser in place of the mutex. With "other_guard" and "other_of_function" the thread runs the
// initialiser of another variable, with "other_part" and "jump_before" it wants the mutex in the
// function, but in no initialiser. In these cases a third thread runs the initialiser, and sleeps
// there for ever.
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

// The variable of one function in two of its callers.
[[gnu::always_inline]] inline int &inlined_config()
{
    static int value = take_mutex();
    return value;
}

KEPT int &one_of_two(int (*load)(), bool is_second)
{
    if (is_second) {
        static int second = load();
        return second;
    }
    static int first = load();
    return first;
}

KEPT int &with_retries(int (*load)(), bool waits)
{
again:
    if (waits) {
        take_mutex();
        waits = false;
        goto again;
    }
    static int value = load();
    return value;
}

KEPT int load_twice()
{
    is_begun = true;
    return config(load_twice, false);
}

KEPT int want_second();

KEPT int want_first()
{
    is_begun = true;
    while (!is_held)
        pause_ms(1);
    return one_of_two(want_second, true);
}

KEPT int want_second()
{
    is_held = true;
    return one_of_two(want_first, false);
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

bool is(void *how, const char *name)
{
    return !strcmp(static_cast<char *>(how), name);
}

KEPT void *initialise(void *how)
{
    if (is(how, "call_once"))
        load_once();
    else if (is(how, "other_guard"))
        theme();
    else if (is(how, "inlined"))
        inlined_config();
    else if (is(how, "twice"))
        load_twice();
    else if (is(how, "two_guards"))
        one_of_two(want_first, false);
    else if (is(how, "other_of_function"))
        one_of_two(take_mutex, false);
    else if (is(how, "jump_before"))
        with_retries(take_mutex, true);
    else
        config(take_mutex, is(how, "other_part"));
    return nullptr;
}

KEPT void *hold(void *how)
{
    while (!is_begun)
        pause_ms(1);
    if (is(how, "two_guards")) {
        one_of_two(want_second, true);
        return nullptr;
    }
    std::lock_guard guard(g_mutex);
    is_held = true;
    if (is(how, "call_once"))
        load_once();
    else if (is(how, "inlined"))
        inlined_config();
    else if (is(how, "other_of_function"))
        one_of_two(take_mutex, true);
    else if (is(how, "jump_before"))
        with_retries(take_mutex, false);
    else
        config(take_mutex, false);
    return nullptr;
}

KEPT void *third(void *how)
{
    if (is(how, "other_of_function"))
        one_of_two(sleep_for_ever, true);
    else if (is(how, "jump_before"))
        with_retries(sleep_for_ever, false);
    else
        config(sleep_for_ever, false);
    return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
    char *how = argc > 1 ? argv[1] : argv[0];
    if (!strncmp(how, "other", 5) || is(how, "jump_before")) {
        start(third, how, "third");
        while (!sleepers)
            pause_ms(1);
    }
    start(initialise, how, "initialiser");
    start(hold, how, "holder");
    say("ready");
    hear();
    _exit(0);
}
