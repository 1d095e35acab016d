/* Mutexes that lend priority (PTHREAD_PRIO_INHERIT) and mutexes with a ceiling
 * (PTHREAD_PRIO_PROTECT). The kernel's priority of the owner is raised while the protocol demands
 * it and no longer. This is so for each form of the call. Says "not permitted" where the process
 * may not use real-time priorities.
 */
#include <sched.h>
#include <stdatomic.h>

#include "../target.h"

enum { LOW = 2, MIDDLE = 4, CEILING = 6, HIGH = 8, FAR_S = 1000 };

static pthread_mutex_t lock;
static atomic_int tid;

/* Field 18 of /proc/.../stat (proc_pid_stat(5)): for real-time threads the negated priority minus
 * 1. */
static int priority_of(int of_tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", of_tid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 18; field++)
        at = strchr(at + 1, ' ');
    return at ? -atoi(at) - 1 : -1;
}

static void become(int priority)
{
    struct sched_param parameters = {.sched_priority = priority};
    must(pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters), "setschedparam");
}

static int in_timedlock(pthread_mutex_t *m)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAR_S;
    return pthread_mutex_timedlock(m, &until);
}

static int (*const ways[])(pthread_mutex_t *) = {pthread_mutex_lock, pthread_mutex_trylock,
                                                 in_timedlock};
enum { WAYS = sizeof ways / sizeof *ways };

static void make(int kind, int protocol)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setprioceiling(&attributes, CEILING);
    must(pthread_mutex_init(&lock, &attributes), "pthread_mutex_init");
}

static void *wants(void *argument)
{
    int (*way)(pthread_mutex_t *) = *(int (*const *)(pthread_mutex_t *))argument;
    become(HIGH);
    tid = own_tid();
    check_equal("lock by who wants it", way(&lock), 0);
    check_equal("priority of who wanted it", priority_of(tid), HIGH);
    check_equal("unlock by who wanted it", pthread_mutex_unlock(&lock), 0);
    return argument;
}

static void inherits(int kind)
{
    for (int way = 0; way < WAYS; way++) {
        make(kind, PTHREAD_PRIO_INHERIT);
        check_equal("lock", ways[way](&lock), 0);
        check_equal("without a waiter", priority_of(own_tid()), LOW);
        tid = 0;
        pthread_t thread = start(wants, (void *)&ways[way == 1 ? 0 : way], NULL);
        while (!tid || !is_asleep(tid))
            pause_ms(1); /* a yield would not help: the other threads have less priority */
        check_equal("with a waiter", priority_of(own_tid()), HIGH);
        check_equal("unlock", pthread_mutex_unlock(&lock), 0);
        check_equal("given on", priority_of(own_tid()), LOW);
        check_equal("join", pthread_join(thread, NULL), 0);
        check_equal("destroy", pthread_mutex_destroy(&lock), 0);
    }
}

static void has_a_ceiling(int kind)
{
    make(kind, PTHREAD_PRIO_PROTECT);
    for (int way = 0; way < WAYS; way++) {
        check_equal("lock", ways[way](&lock), 0);
        check_equal("holds", priority_of(own_tid()), CEILING);
        check_equal("unlock", pthread_mutex_unlock(&lock), 0);
        check_equal("holds no more", priority_of(own_tid()), LOW);
    }
    become(HIGH);
    for (int way = 0; way < WAYS; way++)
        check_equal("above the ceiling", ways[way](&lock), EINVAL);
    become(LOW);
    int old;
    check_equal("setprioceiling", pthread_mutex_setprioceiling(&lock, MIDDLE, &old), 0);
    check_equal("old ceiling", old, CEILING);
    check_equal("lock", pthread_mutex_lock(&lock), 0);
    check_equal("at the new ceiling", priority_of(own_tid()), MIDDLE);
    check_equal("unlock", pthread_mutex_unlock(&lock), 0);
    check_equal("destroy", pthread_mutex_destroy(&lock), 0);
}

int main(void)
{
    struct sched_param low = {.sched_priority = LOW};
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &low) != 0) {
        say("not permitted");
        return 0;
    }
    const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        inherits(kinds[i]);
        has_a_ceiling(kinds[i]);
    }
    return verdict();
}
