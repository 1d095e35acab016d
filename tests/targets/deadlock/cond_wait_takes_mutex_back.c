/* A deadlock through the mutex that a condition wait takes back. One thread holds "other" and waits
 * for the condition with "mutex". A second thread takes "mutex", ends that wait, and wants "other".
 *
 * Argument: how the wait ends: "signal", "timeout", "cancel" or "c11" (cnd_signal).
 * Says "deadlock" when both threads sleep for the last time.
 */
#include <stdbool.h>
#include <threads.h>

#include "../target.h"

static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static mtx_t c11_mutex;
static cnd_t c11_cond;
static const char *how;
static pthread_t sleeper;
static int sleeper_tid, signaller_tid;
static bool sleeps;
static pthread_barrier_t has_mutex;

static bool is_how(const char *name)
{
    return strcmp(how, name) == 0;
}

static KEPT void *waits_for_condition(void *argument)
{
    sleeper_tid = own_tid();
    pthread_mutex_lock(&other);
    if (is_how("c11")) {
        mtx_lock(&c11_mutex);
        sleeps = true;
        cnd_wait(&c11_cond, &c11_mutex);
        return argument;
    }
    pthread_mutex_lock(&mutex);
    sleeps = true;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (is_how("timeout"))
        pthread_cond_timedwait(&cond, &mutex, &until);
    else
        pthread_cond_wait(&cond, &mutex);
    return argument;
}

static KEPT void take_mutex(void)
{
    for (bool ready = false; !ready; pause_ms(1)) {
        if (is_how("c11"))
            mtx_lock(&c11_mutex);
        else
            pthread_mutex_lock(&mutex);
        ready = sleeps;
        if (ready)
            return;
        if (is_how("c11"))
            mtx_unlock(&c11_mutex);
        else
            pthread_mutex_unlock(&mutex);
    }
}

static KEPT void *wakes_then_wants_other(void *argument)
{
    signaller_tid = own_tid();
    take_mutex();
    if (is_how("signal"))
        pthread_cond_signal(&cond);
    else if (is_how("c11"))
        cnd_signal(&c11_cond);
    else if (is_how("cancel"))
        pthread_cancel(sleeper);
    pthread_barrier_wait(&has_mutex);
    pthread_mutex_lock(&other);
    return argument;
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "signal";
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_cond);
    must(pthread_barrier_init(&has_mutex, NULL, 2), "pthread_barrier_init");
    sleeper = start(waits_for_condition, NULL, "sleeper");
    start(wakes_then_wants_other, NULL, "signaller");
    pthread_barrier_wait(&has_mutex);
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", sleeper_tid);
    void *word = is_how("c11") ? (void *)&c11_mutex : (void *)&mutex;
    for (unsigned long address = 0; address != (unsigned long)word; pause_ms(5)) {
        FILE *file = fopen(path, "r");
        if (file && fgets(line, sizeof line, file) && sscanf(line, "%*s %lx", &address) != 1)
            address = 0;
        if (file)
            fclose(file);
    }
    while (!is_asleep(signaller_tid))
        pause_ms(5);
    say("deadlock");
    hear();
    return 0;
}
