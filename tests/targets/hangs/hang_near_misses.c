/* Threads wait without a time limit. The argument says whether something else may end a wait.
 *
 *   nobody           the threads wait for each other
 *   handler_of_lock  the same, and the program has a signal handler
 *   io_uring         the same, and the program has an io_uring; "none" if the kernel refuses
 *   server           main waits in epoll_wait
 *   handler          main waits for a semaphore that a signal handler posts
 *   pipe             main reads from a pipe that a signal handler writes to
 *   timed            a thread waits for a condition with a time limit
 *   other_process    main waits for a semaphore in shared memory
 *   sleep            main sleeps for long
 *   comes            a thread begins to wait only when a line comes
 */
#include <linux/io_uring.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../target.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_work = PTHREAD_COND_INITIALIZER;
static sem_t g_stop;
static int g_pipe[2];

static void *work(void *unused)
{
    pthread_mutex_lock(&g_lock);
    for (;;)
        pthread_cond_wait(&g_work, &g_lock);
    return unused;
}

static void *work_with_limit(void *unused)
{
    struct timespec far;
    clock_gettime(CLOCK_REALTIME, &far);
    far.tv_sec += 100000;
    pthread_mutex_lock(&g_lock);
    pthread_cond_timedwait(&g_work, &g_lock, &far);
    return unused;
}

static void *work_later(void *unused)
{
    hear();
    return work(unused);
}

static void post(int number)
{
    (void)number;
    sem_post(&g_stop);
}

static void write_byte(int number)
{
    (void)number;
    (void)!write(g_pipe[1], "", 1);
}

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "nobody";
    char byte;
    pthread_t worker = start(!strcmp(way, "timed")   ? work_with_limit
                             : !strcmp(way, "comes") ? work_later
                                                     : work,
                             NULL, "worker");
    start(work, NULL, "worker");
    sem_init(&g_stop, 0, 0);
    must(pipe(g_pipe), "pipe");
    if (!strcmp(way, "handler") || !strcmp(way, "handler_of_lock"))
        signal(SIGTERM, post);
    if (!strcmp(way, "pipe"))
        signal(SIGTERM, write_byte);
    struct io_uring_params parameters = {0};
    if (!strcmp(way, "io_uring") && syscall(SYS_io_uring_setup, 1, &parameters) < 0)
        say("none");
    say("ready");
    if (!strcmp(way, "server")) {
        struct epoll_event event;
        return epoll_wait(epoll_create1(0), &event, 1, -1);
    }
    if (!strcmp(way, "handler"))
        return sem_wait(&g_stop);
    if (!strcmp(way, "pipe"))
        return (int)read(g_pipe[0], &byte, 1);
    if (!strcmp(way, "other_process")) {
        sem_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        sem_init(shared, 1, 0);
        return sem_wait(shared);
    }
    if (!strcmp(way, "sleep"))
        pause_ms(100000000);
    pthread_join(worker, NULL);
}
