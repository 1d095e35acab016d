// Locks that are parts of variables. Says {"0x...": "expression", ...}: under each address the
// expression for the object at that address. Ends with stdin.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <shared_mutex>

#include "../target.h"

struct entry {
    char key[24];
    pthread_mutex_t mu;
};
typedef struct entry entry_t;

extern "C" {
struct pool {
    int size;
    pthread_mutex_t mu;
    struct {
        double loads[5];
        pthread_rwlock_t rw;
    } inner;
    const volatile entry_t entries[4];
    union {
        long number;
        struct {
            int before;
            pthread_spinlock_t spin;
        } either;
    };
};
pool conn_pool = {};
static entry_t table[3][4];
static pthread_mutex_t stripes[16];
}

namespace app
{
struct Base {
    long id = 0;
    std::mutex base_mu;
};
struct Server : Base {
    std::shared_mutex config;
    std::condition_variable changed;
    static Base registry;
    Base shards[3];
};
Base Server::registry;
struct Lone {
    static Base shared;
    std::mutex first;
    long more[8];
};
Base Lone::shared;
static Lone lone;
static Server server;
} // namespace app

static const char *separator = "{";
static void say_address(const volatile void *address, const char *expression)
{
    std::printf("%s\"0x%lx\": \"%s\"", separator, (unsigned long)address, expression);
    separator = ", ";
}
#define SAY(expression) say_address(&(expression), #expression)

int main()
{
    SAY(conn_pool.mu);
    SAY(conn_pool.inner.rw);
    SAY(conn_pool.entries[2].mu);
    SAY(conn_pool.either.spin);
    SAY(table[2][1].mu);
    SAY(stripes[7]);
    SAY(app::server.base_mu);
    SAY(app::server.config);
    SAY(app::server.changed);
    SAY(app::server.shards[1].base_mu);
    SAY(app::Server::registry.base_mu);
    SAY(app::lone.first);
    std::puts("}");
    std::fflush(stdout);
    return std::getchar() == EOF ? 0 : 1;
}
