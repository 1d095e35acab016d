/* Threads that execute scripts, each at its own pace, until the threads are stuck or not.
 *
 *     scripted_threads [OBJECT=KIND ...] SCRIPT SCRIPT ...
 *
 * The main thread, thread 0, executes the first script. A script is a list of steps with commas:
 * "lock a, meet 1, lock b". An object has one letter, and the step decides its type. The KIND of
 * an object is one of these:
 *
 *     mutex      recursive, robust, inherit, shared or checked
 *     rwlock     writers: writers go first
 *     semaphore  a number: its first value, else 1
 *     barrier    a number: its parties, else 2
 *
 * The program says the thread ids in the order of the scripts. Then all threads run. The step
 * "meet" bypasses libc and never sleeps, so a scan sees waits of the scripts only.
 */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

#include "../target.h"

enum { THREADS = 64, OBJECTS = 128, FIRST = 1 };

static pthread_mutex_t mutexes[OBJECTS];
static pthread_rwlock_t rwlocks[OBJECTS];
static pthread_spinlock_t spins[OBJECTS];
static sem_t sems[OBJECTS];
static pthread_once_t onces[OBJECTS];
static pthread_barrier_t barriers[OBJECTS];
static pthread_cond_t conds[OBJECTS];

static const char *kinds[OBJECTS];
static char *scripts[THREADS];
static pthread_t threads[THREADS];
static int tids[THREADS], count, met[OBJECTS];
static int here, may_begin;
static __thread char *rest;

static void follow(void);

static const struct timespec *in_an_hour(void)
{
    static __thread struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3600;
    return &until;
}

/* ---- the steps; `o` is the letter of an object or the number of a thread ---- */

#define STEP(name, call)                                                                           \
    static KEPT void step_##name(int o)                                                            \
    {                                                                                              \
        call;                                                                                      \
    }

STEP(lock, pthread_mutex_lock(&mutexes[o]))
STEP(trylock, pthread_mutex_trylock(&mutexes[o]))
STEP(timedlock, pthread_mutex_timedlock(&mutexes[o], in_an_hour()))
STEP(unlock, pthread_mutex_unlock(&mutexes[o]))
STEP(read, pthread_rwlock_rdlock(&rwlocks[o]))
STEP(timedread, pthread_rwlock_timedrdlock(&rwlocks[o], in_an_hour()))
STEP(write, pthread_rwlock_wrlock(&rwlocks[o]))
STEP(timedwrite, pthread_rwlock_timedwrlock(&rwlocks[o], in_an_hour()))
STEP(release, pthread_rwlock_unlock(&rwlocks[o]))
STEP(spin, pthread_spin_lock(&spins[o]))
STEP(unspin, pthread_spin_unlock(&spins[o]))
STEP(get, sem_wait(&sems[o]))
STEP(timedget, sem_timedwait(&sems[o], in_an_hour()))
STEP(post, sem_post(&sems[o]))
STEP(renew, sem_init(&sems[o], 0, 1))
STEP(once, pthread_once(&onces[o], follow)) /* the following steps are the routine */
STEP(arrive, pthread_barrier_wait(&barriers[o]))
STEP(join, pthread_join(threads[o], NULL))
STEP(timedjoin, pthread_timedjoin_np(threads[o], NULL, in_an_hour()))
STEP(wait, pthread_cond_wait(&conds[o], &mutexes[o])) /* with the mutex of the same letter */
STEP(timedwait, pthread_cond_timedwait(&conds[o], &mutexes[o], in_an_hour()))
STEP(signal, pthread_cond_signal(&conds[o]))
STEP(exit, pthread_exit((void *)(intptr_t)o))
STEP(stay, while (o >= 0) pause())

/* The number of scripts with this step. */
static void step_meet(int o)
{
    int all = 0;
    char step[8] = "meet ";
    step[5] = (char)o;
    for (int i = 0; i < count; i++)
        all += strstr(scripts[i], step) != NULL;
    __atomic_fetch_add(&met[o], 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&met[o], __ATOMIC_SEQ_CST) < all)
        sched_yield();
}

static void step_after(int thread) /* it sleeps */
{
    while (!is_asleep(tids[thread]))
        sched_yield();
}

static void step_ended(int thread)
{
    while (syscall(SYS_tgkill, getpid(), tids[thread], 0) == 0)
        sched_yield();
}

/* Says the letter, and continues at a line. */
static void step_ask(int o)
{
    say((char[]){(char)o, 0});
    hear();
}

/* Many threads come and go, so that the library searches for ended threads. */
static void *nothing(void *argument)
{
    return argument;
}

static void step_churn(int o)
{
    for (int i = 0; i < 200; i++)
        pthread_join(start(nothing, NULL, NULL), NULL);
    (void)o;
}

#define KNOWN(name) {#name, step_##name}
static const struct {
    const char *name;
    void (*run)(int o);
} steps[] = {
    KNOWN(lock),      KNOWN(trylock), KNOWN(timedlock),  KNOWN(unlock),    KNOWN(read),
    KNOWN(timedread), KNOWN(write),   KNOWN(timedwrite), KNOWN(release),   KNOWN(spin),
    KNOWN(unspin),    KNOWN(get),     KNOWN(timedget),   KNOWN(post),      KNOWN(renew),
    KNOWN(once),      KNOWN(arrive),  KNOWN(join),       KNOWN(timedjoin), KNOWN(wait),
    KNOWN(timedwait), KNOWN(signal),  KNOWN(exit),       KNOWN(stay),      KNOWN(meet),
    KNOWN(after),     KNOWN(ended),   KNOWN(churn),      KNOWN(ask),
};

static void take_step(const char *name, int o)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (!strcmp(steps[i].name, name)) {
            steps[i].run(o);
            return;
        }
    must(EINVAL, name);
}

static int is_about_a_thread(const char *name)
{
    return strstr(name, "join") || !strcmp(name, "after") || !strcmp(name, "ended");
}

static void follow(void)
{
    char name[32], object[8];
    while (*rest) {
        int length = 0, found = sscanf(rest, " %31[a-z] %7[a-z0-9] %n", name, object, &length);
        if (found < 2) {
            object[0] = 0;
            must(sscanf(rest, " %31[a-z] %n", name, &length) != 1, rest);
        }
        rest += length;
        rest += *rest == ',';
        take_step(name, is_about_a_thread(name) ? atoi(object) : object[0]);
    }
}

/* ---- the objects ---- */

static int is(int o, const char *kind)
{
    return kinds[o] && !strcmp(kinds[o], kind);
}

static unsigned number(int o, unsigned otherwise)
{
    return kinds[o] ? (unsigned)atoi(kinds[o]) : otherwise;
}

static void make(int o)
{
    pthread_mutexattr_t mutex;
    pthread_rwlockattr_t rwlock;
    pthread_mutexattr_init(&mutex);
    pthread_rwlockattr_init(&rwlock);
    if (is(o, "recursive"))
        pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_RECURSIVE);
    if (is(o, "checked"))
        pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_ERRORCHECK);
    if (is(o, "robust"))
        pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    if (is(o, "inherit"))
        pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
    if (is(o, "shared"))
        pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    if (is(o, "writers"))
        pthread_rwlockattr_setkind_np(&rwlock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    must(pthread_mutex_init(&mutexes[o], &mutex), "mutex");
    must(pthread_rwlock_init(&rwlocks[o], &rwlock), "rwlock");
    must(pthread_spin_init(&spins[o], 0), "spin");
    must(sem_init(&sems[o], is(o, "shared"), is(o, "shared") ? 1 : number(o, 1)), "sem");
    must(pthread_barrier_init(&barriers[o], NULL, number(o, 2) ? number(o, 2) : 2), "barrier");
    must(pthread_cond_init(&conds[o], NULL), "cond");
}

static void *run(void *argument)
{
    int number = (int)(intptr_t)argument;
    tids[number] = own_tid();
    rest = scripts[number];
    __atomic_fetch_add(&here, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&may_begin, __ATOMIC_SEQ_CST))
        sched_yield();
    follow();
    return NULL;
}

static void say_tids(void)
{
    char text[16 * THREADS] = "{\"tids\": [";
    for (int i = 0; i < count; i++)
        sprintf(text + strlen(text), "%s%d", i ? ", " : "", tids[i]);
    say(strcat(text, "]}"));
}

int main(int argc, char **argv)
{
    for (int i = FIRST; i < argc; i++)
        if (argv[i][1] == '=')
            kinds[(int)argv[i][0]] = argv[i] + 2;
        else
            scripts[count++] = argv[i];
    for (int o = 'a'; o <= 'z'; o++)
        make(o);
    tids[0] = own_tid();
    threads[0] = pthread_self();
    rest = scripts[0];
    for (int i = 1; i < count; i++)
        threads[i] = start(run, (void *)(intptr_t)i, NULL);
    while (__atomic_load_n(&here, __ATOMIC_SEQ_CST) < count - 1)
        sched_yield();
    say_tids();
    __atomic_store_n(&may_begin, 1, __ATOMIC_SEQ_CST);
    follow();
    hear();
    return 0;
}
