/* A deadlock with a reader: the reader of g_table_lock wants g_log_lock, whose holder wants to
 * write the table.
 */
#include "../target.h"

pthread_rwlock_t g_table_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_mutex_t g_log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t each_has_one;
static int reader_tid, writer_tid;

static KEPT void table_scan(void)
{
    pthread_rwlock_rdlock(&g_table_lock);
    pthread_barrier_wait(&each_has_one);
    pthread_mutex_lock(&g_log_lock);
}

static KEPT void log_rotate(void)
{
    pthread_mutex_lock(&g_log_lock);
    pthread_barrier_wait(&each_has_one);
    pthread_rwlock_wrlock(&g_table_lock);
}

static void *reader(void *argument)
{
    reader_tid = own_tid();
    table_scan();
    return argument;
}

static void *writer(void *argument)
{
    writer_tid = own_tid();
    log_rotate();
    return argument;
}

int main(void)
{
    pthread_barrier_init(&each_has_one, NULL, 3);
    start(reader, NULL, "reader");
    start(writer, NULL, "writer");
    pthread_barrier_wait(&each_has_one);
    char text[100];
    snprintf(text, sizeof text, "{\"reader\": %d, \"writer\": %d}", reader_tid, writer_tid);
    say(text);
    hear();
    return 0;
}
