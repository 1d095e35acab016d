// Very many locks of the C++ library, each taken by a std::lock_guard. Compiled with -O0, all calls
// of pthread_mutex_lock() come from one line of the library's headers. One thread takes the locks
// in rising order. lock_guards inversion|none: a second thread takes two of them in the opposite
// order, or in the same order. Says "ok" when both threads have done so.
#include <cstring>
#include <mutex>
#include <thread>

#include "../target.h"

namespace
{

constexpr int locks = 400;
std::mutex g_locks[locks];

void both(int first, int second)
{
    std::lock_guard<std::mutex> outer{g_locks[first]};
    std::lock_guard<std::mutex> inner{g_locks[second]};
}

void all_upwards()
{
    for (int i = 0; i + 1 < locks; i++)
        both(i, i + 1);
}

void downwards()
{
    both(locks - 1, locks - 2);
}

void upwards()
{
    both(locks - 2, locks - 1);
}

} // namespace

int main(int argc, char **argv)
{
    bool inverts = argc > 1 && std::strcmp(argv[1], "inversion") == 0;
    // Both threads live at one time: else their orders could not meet.
    std::mutex turn;
    turn.lock();
    std::thread second([&] {
        turn.lock();
        turn.unlock();
        inverts ? downwards() : upwards();
    });
    std::thread first(all_upwards);
    turn.unlock();
    first.join();
    second.join();
    say("ok");
    hear();
}
