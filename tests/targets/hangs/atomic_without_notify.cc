// Three threads wait until a number is not 0. Another thread adds to the number, and notifies
// nobody.
#include <atomic>
#include <thread>
#include <vector>

#include <unistd.h>

static std::atomic<int> g_tickets{0}, g_waiting{0};

[[gnu::noinline]] static void take_ticket()
{
    g_waiting++;
    for (;;) {
        int tickets = g_tickets.load();
        if (tickets > 0 && g_tickets.compare_exchange_strong(tickets, tickets - 1))
            return;
        if (tickets == 0)
            g_tickets.wait(0);
    }
}

[[gnu::noinline]] static void release_tickets(int count)
{
    g_tickets += count;
}

int main()
{
    std::vector<std::thread> consumers;
    for (int number = 0; number < 3; number++)
        consumers.emplace_back(take_ticket);
    while (g_waiting < 3)
        usleep(1000);
    usleep(300000); // a thread that does not sleep yet takes a ticket: then nothing hangs
    release_tickets(3);
    (void)!write(1, "ready\n", 6);
    for (auto &consumer : consumers)
        consumer.join();
}
