/* Forks while no unit of a semaphore is free; the child requests it. The child says its pid first.
 *
 *   held     a thread of the parent used it as a lock, and has it: the child waits for good
 *   joined   the same, and a thread of the child requests it; the first thread joins that thread
 *   seldom   as held, but too few uses show that it is a lock
 *   timed    as held, but the child waits with a time limit
 *   shared   as held, but parent and child share the semaphore; the parent posts it at last
 *   own      the forking thread has it: the child posts it at last for another of its threads
 *   free     no thread has it at the fork; a second thread of the child takes it
 *   signal   threads of the parent post it for each other
 *   life     the same; after the fork the parent makes it a lock, and uses that
 *   anew     as held, but the child initialises it anew, and waits for a post
 */
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../target.h"

enum { USES = 100 };

static sem_t private_semaphore, *semaphore = &private_semaphore;
static sem_t is_ready;
static const char *way;
static int to_child[2], to_parent[2];

static int is_way(const char *name)
{
    return strcmp(way, name) == 0;
}

static void send(const int *way_out)
{
    if (write(way_out[1], "!", 1) != 1)
        _exit(3);
}

static void receive(const int *way_in)
{
    char c;
    if (read(way_in[0], &c, 1) != 1)
        _exit(3);
}

static void use(int times)
{
    for (int i = 0; i < times; i++) {
        sem_wait(semaphore);
        sem_post(semaphore);
    }
}

static void *stay(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void *hold(void *unused)
{
    use(is_way("seldom") ? 2 : USES);
    sem_wait(semaphore);
    sem_post(&is_ready);
    return stay(unused);
}

/* Ends with no unit free. */
static void *hear_signals(void *unused)
{
    for (int i = 0; i <= USES; i++)
        sem_wait(semaphore);
    sem_post(&is_ready);
    return stay(unused);
}

static void before_fork(void)
{
    if (is_way("own")) {
        use(USES);
        sem_wait(semaphore);
    } else if (is_way("free")) {
        use(USES);
    } else if (is_way("signal") || is_way("life")) {
        start(hear_signals, NULL, "hears");
        for (int i = 0; i < USES; i++)
            sem_post(semaphore);
        sem_wait(&is_ready);
    } else {
        start(hold, NULL, "holder");
        sem_wait(&is_ready);
    }
}

static KEPT void *want(void *unused)
{
    sem_wait(semaphore);
    say("got it");
    return unused;
}

static void *take(void *unused)
{
    sem_wait(semaphore);
    send(to_child);
    return stay(unused);
}

static void in_child(void)
{
    char line[32];
    struct timespec end;
    if (is_way("free")) {
        start(take, NULL, "taker");
        receive(to_child);
    } else if (is_way("anew")) {
        sem_destroy(semaphore);
        sem_init(semaphore, 0, 0);
        start(stay, NULL, "stays");
    }
    send(to_parent);
    receive(to_child);
    snprintf(line, sizeof line, "%d", getpid());
    say(line);
    if (is_way("own") || is_way("joined")) {
        pthread_t second = start(want, NULL, "second");
        if (is_way("own")) {
            receive(to_child);
            sem_post(semaphore);
        }
        pthread_join(second, NULL);
    } else if (is_way("timed")) {
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 1000;
        sem_timedwait(semaphore, &end);
    } else {
        want(NULL);
    }
}

int main(int argc, char **argv)
{
    way = argc > 1 ? argv[1] : "held";
    int is_shared = is_way("shared");
    if (is_shared)
        semaphore = mmap(NULL, sizeof *semaphore, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(semaphore == MAP_FAILED || pipe(to_child) || pipe(to_parent) ? errno : 0, "start");
    sem_init(&is_ready, 0, 0);
    sem_init(semaphore, is_shared, 1);
    before_fork();
    int parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(3);
        in_child();
        hear();
        _exit(0);
    }
    receive(to_parent);
    if (is_way("life")) {
        sem_destroy(semaphore);
        sem_init(semaphore, 0, 1);
        use(USES);
        sem_wait(semaphore);
    }
    send(to_child);
    hear();
    if (is_shared)
        sem_post(semaphore);
    send(to_child);
    hear();
    kill(child, SIGKILL);
    return 0;
}
