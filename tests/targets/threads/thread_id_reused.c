/* A thread, and later another thread with the same id: thread_id_reused waits|holds|keeps.
 *
 *   waits   each of the two waits for a mutex that the main thread holds
 *   holds   each of the two holds a mutex and reads from a pipe, while a third thread waits
 *           for the mutex
 *   keeps   the same, but the first thread ends with the mutex held, and the second does not
 *           want it
 *
 * The name of the first thread is "first". At a line the first thread continues and ends, and
 * threads come and go until one has the same id. The thread with the same id is named "second" and
 * does the same as the first. Says {"tid": ..., "begun": ...} of each when the thread sleeps.
 * "begun" is its start by CLOCK_MONOTONIC. Says "none" if the id never comes back, and "ok" at the
 * end.
 */
#include <sched.h>

#include "../target.h"

/* The kernel gives lower ids once only, to the first processes (RESERVED_PIDS). */
enum { MAX_TRIES = 1 << 14, FIRST_AGAIN = 300 };

struct one {
    const char *name;
    int wanted, tid, holds,
        has_it; /* wanted: the tid that the thread must have to stay, 0 for any */
    double begun;
};

static pthread_mutex_t g_reused_lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], keeps;

static void *want(void *argument)
{
    pthread_mutex_lock(&g_reused_lock);
    pthread_mutex_unlock(&g_reused_lock);
    return argument;
}

static int stays(const struct one *self)
{
    return self->wanted ? self->tid == self->wanted : self->tid >= FIRST_AGAIN;
}

static void *run(void *argument)
{
    struct one *self = argument;
    char c;
    self->begun = now();
    __atomic_store_n(&self->tid, own_tid(), __ATOMIC_SEQ_CST);
    if (!stays(self))
        return NULL;
    pthread_setname_np(pthread_self(), self->name);
    int takes = !keeps || !self->wanted;
    if (takes)
        pthread_mutex_lock(&g_reused_lock);
    self->has_it = 1;
    if (self->holds)
        must(read(ends[0], &c, 1) != 1, "read");
    if (!keeps)
        pthread_mutex_unlock(&g_reused_lock);
    return NULL;
}

static pthread_t begin(struct one *self)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        self->tid = 0;
        pthread_t thread = start(run, self, NULL);
        while (!__atomic_load_n(&self->tid, __ATOMIC_SEQ_CST))
            sched_yield();
        if (stays(self))
            return thread;
        pthread_join(thread, NULL);
    }
    say("none");
    exit(0);
}

/* Returns the tid of the thread that stayed. */
static int once(const char *name, int wanted, int holds)
{
    struct one one = {.name = name, .wanted = wanted, .holds = holds};
    pthread_t wants = 0, thread;
    char text[80];
    if (!holds)
        pthread_mutex_lock(&g_reused_lock);
    thread = begin(&one);
    while (!is_asleep(one.tid) || (holds && !__atomic_load_n(&one.has_it, __ATOMIC_SEQ_CST)))
        pause_ms(1);
    if (holds && !(keeps && wanted))
        wants = start(want, NULL, "wants");
    snprintf(text, sizeof text, "{\"tid\": %d, \"begun\": %.6f}", one.tid, one.begun);
    say(text);
    hear();
    if (holds)
        must(write(ends[1], "x", 1) != 1, "write");
    else
        pthread_mutex_unlock(&g_reused_lock);
    pthread_join(thread, NULL);
    if (wants && !keeps)
        pthread_join(wants, NULL);
    return one.tid;
}

int main(int argc, char **argv)
{
    keeps = argc > 1 && !strcmp(argv[1], "keeps");
    int holds = keeps || (argc > 1 && !strcmp(argv[1], "holds"));
    must(pipe(ends) ? errno : 0, "pipe");
    once("second", once("first", 0, holds), holds);
    say("ok");
    return 0;
}
