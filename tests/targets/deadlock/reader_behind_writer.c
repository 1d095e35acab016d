/* A reader of g_table_lock reads again while a writer waits for the reader. The lock prefers
 * writers (PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), so the reader waits behind the writer.
 * With "timed" the wait of the writer gives up after an hour.
 */
#include "../target.h"

pthread_rwlock_t g_table_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_barrier_t is_read, both_known;
static int reader_tid, writer_tid, timed;

static KEPT void scan_again(void)
{
    pthread_rwlock_rdlock(&g_table_lock);
}

static KEPT void insert(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3600;
    if (timed)
        pthread_rwlock_timedwrlock(&g_table_lock, &until);
    else
        pthread_rwlock_wrlock(&g_table_lock);
}

static void *reader(void *argument)
{
    reader_tid = own_tid();
    pthread_rwlock_rdlock(&g_table_lock);
    pthread_barrier_wait(&is_read);
    pthread_barrier_wait(&both_known);
    while (pthread_rwlock_tryrdlock(&g_table_lock) == 0) /* until the writer waits */
        pthread_rwlock_unlock(&g_table_lock);
    scan_again();
    return argument;
}

static void *writer(void *argument)
{
    writer_tid = own_tid();
    pthread_barrier_wait(&is_read);
    pthread_barrier_wait(&both_known);
    insert();
    return argument;
}

int main(int argc, char **argv)
{
    timed = argc > 1 && strcmp(argv[1], "timed") == 0;
    pthread_barrier_init(&is_read, NULL, 2);
    pthread_barrier_init(&both_known, NULL, 3);
    start(reader, NULL, "reader");
    start(writer, NULL, "writer");
    pthread_barrier_wait(&both_known);
    char text[100];
    snprintf(text, sizeof text, "{\"reader\": %d, \"writer\": %d}", reader_tid, writer_tid);
    say(text);
    hear();
    return 0;
}
