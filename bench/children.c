/* Takes many locks twice, or makes many children. Says the seconds, the CPU seconds and the page
 * faults, with those of the children.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void use(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

static void use_locks(long count)
{
    pthread_mutex_t *mutexes = calloc((size_t)count, sizeof *mutexes);
    for (long i = 0; i < 2 * count; i++)
        use(&mutexes[i % count]);
}

static void make_children(const char *kind, long count)
{
    use(&lock);
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (!strcmp(kind, "lock"))
                use(&lock);
            if (!strcmp(kind, "exec"))
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int count, char **arguments)
{
    struct timespec begin, end;
    struct rusage own, children;
    if (count < 3)
        return 2;
    long number = atol(arguments[2]);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!strcmp(arguments[1], "locks"))
        use_locks(number);
    else
        make_children(arguments[1], number);
    clock_gettime(CLOCK_MONOTONIC, &end);
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    printf("%.4f %.4f %ld\n",
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9,
           seconds(own.ru_utime) + seconds(own.ru_stime) + seconds(children.ru_utime) +
               seconds(children.ru_stime),
           own.ru_minflt + children.ru_minflt);
    return 0;
}
