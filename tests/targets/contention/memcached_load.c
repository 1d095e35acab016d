/* Load for memcached: memcached_load PORT CONNECTIONS BATCH SECONDS [PAUSE_US]. Each connection has
 * a thread. The thread sends BATCH requests at a time, nine gets to one set. The thread reads all
 * answers, and pauses, before the next batch. Says {"requests": ..., "seconds": ...}.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdatomic.h>

#include "../target.h"

enum { KEYS = 10000, VALUE = 100, BATCH_MAX = 64, SETS_EVERY = 10 };

static int port, batch, pause_us;
static atomic_int stop;
static atomic_ulong requests;

static int connected(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, to_server = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(to_server, (struct sockaddr *)&to, sizeof to) ? errno : 0, "connect");
    setsockopt(to_server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return to_server;
}

/* The answer to a get ends with "END\r\n", to a set with "STORED\r\n". Each has one 'D' before
 * "\r\n", and values consist of 'v' only. */
static void read_answers(int server, int awaited)
{
    static __thread char text[1 << 16];
    char before = 0;
    while (awaited) {
        ssize_t length = read(server, text, sizeof text);
        must(length <= 0, "read");
        for (ssize_t i = 0; i < length; before = text[i++])
            awaited -= before == 'D' && text[i] == '\r';
    }
}

static void send_all(int server, const char *text, size_t length)
{
    must(write(server, text, length) != (ssize_t)length, "write");
}

static void *client(void *argument)
{
    char text[BATCH_MAX * (VALUE + 60)], value[VALUE + 1] = {0};
    unsigned random = (unsigned)(uintptr_t)argument * 7919u + 1, sent = 0;
    int server = connected();
    memset(value, 'v', VALUE);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        int at = 0;
        for (int i = 0; i < batch; i++) {
            random = random * 1664525u + 1013904223u;
            unsigned key = (random >> 8) % KEYS;
            if (sent++ % SETS_EVERY == 0)
                at += sprintf(text + at, "set key-%u 0 0 %d\r\n%s\r\n", key, VALUE, value);
            else
                at += sprintf(text + at, "get key-%u\r\n", key);
        }
        send_all(server, text, (size_t)at);
        read_answers(server, batch);
        atomic_fetch_add_explicit(&requests, (unsigned long)batch, memory_order_relaxed);
        if (pause_us)
            usleep((useconds_t)pause_us);
    }
    close(server);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t clients[64];
    if (argc < 5)
        return 2;
    port = atoi(argv[1]);
    int connections = atoi(argv[2]);
    batch = atoi(argv[3]);
    pause_us = argc > 5 ? atoi(argv[5]) : 0;
    if (connections > 64 || batch > BATCH_MAX)
        return 2;
    double before = now();
    for (int i = 0; i < connections; i++)
        clients[i] = start(client, (void *)(uintptr_t)i, NULL);
    pause_ms((unsigned)(atof(argv[4]) * 1000));
    atomic_store(&stop, 1);
    for (int i = 0; i < connections; i++)
        pthread_join(clients[i], NULL);
    printf("{\"requests\": %lu, \"seconds\": %.6f}\n", requests, now() - before);
    return 0;
}
