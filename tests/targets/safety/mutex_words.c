/* The words of a mutex while it is held and after its release. Another thread and a child read the
 * words. There is a check for each kind of mutex, in a process with one thread and with several.
 */
#include "../target.h"

#include <sys/wait.h>

enum { OWNER = 0x3fffffff, ROUNDS = 3 };

static pthread_mutex_t lock;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int kind, shared, requested;

static void make(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutexattr_setpshared(&attributes, shared);
    check_equal("init", pthread_mutex_init(&lock, &attributes), 0);
    pthread_mutexattr_destroy(&attributes);
}

static void is_used_by_me_and(int sleepers, const char *when)
{
    char what[80];
    snprintf(what, sizeof what, "kind %d, shared %d, %s", kind, shared, when);
    check_equal(what, lock.__data.__lock != 0, 1);
    check_equal(what, lock.__data.__owner, own_tid());
    check_equal(what, (long)lock.__data.__nusers, 1 + sleepers);
}

static void is_mine(const char *when)
{
    is_used_by_me_and(0, when);
}

static void is_free(const char *when)
{
    char what[80];
    snprintf(what, sizeof what, "kind %d, shared %d, %s", kind, shared, when);
    check_equal(what, lock.__data.__lock, 0);
    check_equal(what, lock.__data.__owner, 0);
    check_equal(what, (long)lock.__data.__nusers, 0);
}

static void take_and_give_back(const char *when)
{
    for (int i = 0; i < ROUNDS; i++) {
        check_equal(when, pthread_mutex_lock(&lock), 0);
        is_mine(when);
        check_equal(when, pthread_mutex_unlock(&lock), 0);
        is_free(when);
    }
}

static void *cannot_have_it(void *argument)
{
    struct timespec past = {.tv_sec = 1};
    check_equal("trylock", pthread_mutex_trylock(&lock), EBUSY);
    check_equal("timedlock", pthread_mutex_timedlock(&lock, &past), ETIMEDOUT);
    return argument;
}

static void *has_to_wait(void *argument)
{
    __atomic_store_n(&requested, 1, __ATOMIC_RELEASE);
    take_and_give_back("after a wait");
    return argument;
}

static void *signals(void *argument)
{
    check_equal("lock to signal", pthread_mutex_lock(&lock), 0);
    is_used_by_me_and(1, "to signal");
    requested = 1;
    pthread_cond_signal(&cond);
    check_equal("unlock", pthread_mutex_unlock(&lock), 0);
    return argument;
}

static void with_others(void)
{
    check_equal("lock", pthread_mutex_lock(&lock), 0);
    pthread_join(start(cannot_have_it, NULL, NULL), NULL);
    is_mine("after others tried");
    requested = 0;
    pthread_t waiter = start(has_to_wait, NULL, NULL);
    while (!__atomic_load_n(&requested, __ATOMIC_ACQUIRE))
        sched_yield();
    check_equal("unlock", pthread_mutex_unlock(&lock), 0);
    pthread_join(waiter, NULL);
    take_and_give_back("after another had it");

    check_equal("lock", pthread_mutex_lock(&lock), 0);
    requested = 0;
    pthread_t signaller = start(signals, NULL, NULL);
    while (!requested)
        check_equal("wait", pthread_cond_wait(&cond, &lock), 0);
    is_mine("after a condition wait");
    check_equal("unlock", pthread_mutex_unlock(&lock), 0);
    pthread_join(signaller, NULL);
    is_free("after a condition wait");
}

static void in_a_child(void)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        failures = 0;
        take_and_give_back("in a child");
        _exit(failures != 0);
    }
    waitpid(child, &status, 0);
    check_equal("child", status, 0);
}

static void each_kind(void (*check)(void))
{
    static const int kinds[] = {PTHREAD_MUTEX_TIMED_NP, PTHREAD_MUTEX_ADAPTIVE_NP,
                                PTHREAD_MUTEX_ERRORCHECK_NP, PTHREAD_MUTEX_RECURSIVE_NP};
    for (int i = 0; i < 2 * (int)(sizeof kinds / sizeof *kinds); i++) {
        kind = kinds[i / 2];
        shared = i % 2 ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;
        make();
        check();
        check_equal("destroy", pthread_mutex_destroy(&lock), 0);
    }
}

/* The first call that tries refuses such a mutex to a thread without real-time priority. But glibc
 * 2.36 records the priority all the same, and the next call has nothing left to ask for. So a
 * trylock before the lock would make the lock succeed (nptl/tpp.c). */
static void with_a_ceiling(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_PROTECT);
    pthread_mutexattr_setprioceiling(&attributes, 10);
    check_equal("init", pthread_mutex_init(&lock, &attributes), 0);
    check_equal("lock with a ceiling", pthread_mutex_lock(&lock), EINVAL);
}

static void alone(void)
{
    take_and_give_back("alone");
}

int main(void)
{
    each_kind(alone);
    each_kind(with_others);
    each_kind(in_a_child);
    with_a_ceiling();
    return verdict();
}
