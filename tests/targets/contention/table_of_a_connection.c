/* The connections of a server wait for a table, each at a condition of its own, as in a database.
 *
 * One connection has the table, and reads from its client, who is silent. Another thread sleeps in
 * the same call, and is no connection. With the argument "two" a second connection reads, too, and
 * has nothing. Says who has the table and who waits, when they wait.
 */
#include <sched.h>

#include "../target.h"

enum { WAITERS = 4, MOST = WAITERS + 2 };

struct client {
    int pipe[2], tid, has_table, wants_table;
    pthread_cond_t granted;
};

static struct client clients[MOST], admin;
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;

static KEPT char read_query(struct client *self)
{
    char query = 0;
    return read(self->pipe[0], &query, 1) == 1 ? query : 'q';
}

/* Idle rules know a function of this name: it waits for another statement. */
static KEPT void dispatch_command(struct client *self)
{
    pthread_mutex_lock(&tables);
    while (self->wants_table && !self->has_table)
        pthread_cond_wait(&self->granted, &tables);
    pthread_mutex_unlock(&tables);
}

static KEPT void *connection(void *argument)
{
    struct client *self = argument;
    __atomic_store_n(&self->tid, own_tid(), __ATOMIC_RELEASE);
    do
        dispatch_command(self);
    while (read_query(self) != 'q');
    return NULL;
}

static KEPT void *administration(void *argument)
{
    struct client *self = argument;
    __atomic_store_n(&self->tid, own_tid(), __ATOMIC_RELEASE);
    read_query(self);
    return NULL;
}

static void start_client(struct client *client, void *(*run)(void *), const char *name)
{
    must(pipe(client->pipe) ? errno : 0, "pipe");
    must(pthread_cond_init(&client->granted, NULL), "cond");
    start(run, client, name);
    while (!__atomic_load_n(&client->tid, __ATOMIC_ACQUIRE) || !is_asleep(client->tid))
        sched_yield();
}

int main(int argc, char **argv)
{
    int count = argc > 1 && strcmp(argv[1], "two") == 0 ? MOST : MOST - 1;
    start_client(&admin, administration, "admin");
    clients[0].has_table = 1;
    for (int i = 0; i < count; i++) {
        clients[i].wants_table = 0 < i && i <= WAITERS;
        start_client(&clients[i], connection, "connection");
    }
    char text[80];
    snprintf(text, sizeof text, "{\"has_table\": %d, \"waiters\": %d}", clients[0].tid, WAITERS);
    say(text);
    hear();
    _exit(0);
}
