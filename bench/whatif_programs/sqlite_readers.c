/* Threads that read a database of SQLite: sqlite_readers FILE THREADS CONNECTIONS ROWS READ_US
 *
 * The threads share the connections, so the mutex of each connection is the lock. A query reads
 * ROWS rows. A connection caches few pages, and each read of the file takes READ_US longer, as from
 * a remote disk. For each line of stdin the program says how many queries it answered.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEYS = 20000, CONNECTIONS_MAX = 64, SQL_MAX = 200, THINK_US = 1000 };

static sqlite3 *connections[CONNECTIONS_MAX];
static int connection_count, rows, read_us;
static atomic_ulong queries;

static void must(int status, const char *what)
{
    if (status) {
        fprintf(stderr, "%s fails: %d\n", what, status);
        exit(1);
    }
}

static ssize_t slow_pread(int file, void *to, size_t size, off_t at)
{
    if (size > 100)
        usleep((useconds_t)read_us); /* a page, and not the header of the file */
    return pread(file, to, size, at);
}

static void make(sqlite3 *database)
{
    char *sql = "create table lines (id integer primary key, text text);"
                "with recursive n(i) as (select 0 union all select i + 1 from n where i < 19999)"
                " insert into lines select i, hex(randomblob(1000)) from n;";
    must(sqlite3_exec(database, sql, NULL, NULL, NULL), "the table");
}

static void *reader(void *argument)
{
    unsigned random = (unsigned)(size_t)argument * 7919u + 1;
    for (;;) {
        char sql[SQL_MAX];
        usleep(THINK_US);
        random = random * 1664525u + 1013904223u;
        sqlite3 *database = connections[(random >> 8) % (unsigned)connection_count];
        int at = sprintf(sql, "select sum(length(text)) from lines where id in (");
        for (int i = 0; i < rows; i++) {
            random = random * 1664525u + 1013904223u;
            at += sprintf(sql + at, "%s%u", i ? "," : "", (random >> 8) % KEYS);
        }
        sprintf(sql + at, ")");
        /* The mutex covers all of the query, as each user of a shared connection does it. */
        sqlite3_mutex_enter(sqlite3_db_mutex(database));
        must(sqlite3_exec(database, sql, NULL, NULL, NULL), "the query");
        sqlite3_mutex_leave(sqlite3_db_mutex(database));
        atomic_fetch_add_explicit(&queries, 1, memory_order_relaxed);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    char line[16];
    if (argc < 6)
        return 2;
    /* SQLite advises so for many threads: no mutex for statistics of memory. */
    must(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0), "the configuration");
    sqlite3_vfs *files = sqlite3_vfs_find(NULL);
    connection_count = atoi(argv[3]);
    rows = atoi(argv[4]);
    if (connection_count > CONNECTIONS_MAX || rows > 8)
        return 2;
    for (int i = 0; i < connection_count; i++) {
        must(sqlite3_open(argv[1], &connections[i]), "the file");
        if (!i && sqlite3_exec(connections[i], "select 1 from lines", NULL, NULL, NULL))
            make(connections[i]);
        must(sqlite3_exec(connections[i], "pragma cache_size = 100", NULL, NULL, NULL), "the size");
    }
    read_us = atoi(argv[5]);
    must(files->xSetSystemCall(files, "pread", (sqlite3_syscall_ptr)slow_pread), "pread");
    files->xSetSystemCall(files, "pread64", (sqlite3_syscall_ptr)slow_pread);
    for (long i = 0; i < atoi(argv[2]); i++)
        must(pthread_create(&thread, NULL, reader, (void *)i), "a thread");
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        printf("%lu\n", queries);
        fflush(stdout);
    }
    return 0;
}
