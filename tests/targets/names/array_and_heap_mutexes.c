/* Objects on the heap, whose mutexes one call site initialises, and an array of mutexes. Threads
 * fight for all of them in turn, so each mutex has waiters.
 *
 * Says the truth: the sums over the objects and over the array. At a line the program frees every
 * other object and says "freed"; then it ends.
 */
#include <sched.h>
#include <stdatomic.h>

#include "../target.h"

enum { OBJECTS = 200, SHARDS = 8, ROUNDS = 3 };

struct object {
    char payload[100];
    pthread_mutex_t mutex;
};
static struct object *objects[OBJECTS];
static struct {
    int size;
    pthread_mutex_t mu;
} shards[SHARDS];

struct sums {
    long acquisitions, contended;
    double min_s; /* the wait as the holder measured it; the true wait is longer */
    double max_s; /* the wait as the waiter measured it, around the call */
};
static struct sums of_objects, of_shards;

static pthread_mutex_t *wanted; /* the lock that the threads now fight for */
static atomic_int wants;
static pthread_barrier_t taken, over;
static int wanter_tid;

static KEPT struct object *make_object(void)
{
    struct object *made = calloc(1, sizeof *made);
    must(made ? 0 : ENOMEM, "calloc");
    must(pthread_mutex_init(&made->mutex, NULL), "pthread_mutex_init");
    return made;
}

static KEPT void want(struct sums *sums)
{
    double before = now();
    atomic_store(&wants, 1); /* from here on the thread sleeps only in the lock */
    pthread_mutex_lock(wanted);
    sums->max_s += now() - before;
    pthread_mutex_unlock(wanted);
    sums->acquisitions++;
    sums->contended++;
}

/* Holds the lock until the other thread has slept in its wait. */
static KEPT void hold(pthread_mutex_t *mutex, struct sums *sums)
{
    wanted = mutex;
    pthread_mutex_lock(mutex);
    sums->acquisitions++;
    pthread_barrier_wait(&taken);
    while (!atomic_load(&wants) || !is_asleep(wanter_tid))
        sched_yield();
    double asleep = now();
    pause_ms(1);
    sums->min_s += now() - asleep;
    atomic_store(&wants, 0);
    pthread_mutex_unlock(mutex);
    pthread_barrier_wait(&over);
}

static void *wanter(void *argument)
{
    wanter_tid = own_tid();
    pthread_barrier_wait(&over);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < OBJECTS + SHARDS; i++) {
            pthread_barrier_wait(&taken);
            want(i < OBJECTS ? &of_objects : &of_shards);
            pthread_barrier_wait(&over);
        }
    }
    return argument;
}

static int add(char *text, size_t size, const char *what, int instances, struct sums sums)
{
    return snprintf(text, size,
                    "\"%s\": {\"instances\": %d, \"acquisitions\": %ld, \"contended\": %ld, "
                    "\"min_s\": %.9f, \"max_s\": %.9f}",
                    what, instances, sums.acquisitions, sums.contended, sums.min_s, sums.max_s);
}

int main(void)
{
    pthread_barrier_init(&taken, NULL, 2);
    pthread_barrier_init(&over, NULL, 2);
    for (int i = 0; i < OBJECTS; i++)
        objects[i] = make_object();
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&shards[i].mu, NULL);
    pthread_t thread = start(wanter, NULL, "wanter");
    pthread_barrier_wait(&over);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < OBJECTS; i++)
            hold(&objects[i]->mutex, &of_objects);
        for (int i = 0; i < SHARDS; i++)
            hold(&shards[i].mu, &of_shards);
    }
    pthread_join(thread, NULL);
    char text[1000] = "{";
    int at = 1 + add(text + 1, sizeof text - 1, "objects", OBJECTS, of_objects);
    text[at++] = ',';
    at += add(text + at, sizeof text - (size_t)at, "shards", SHARDS, of_shards);
    snprintf(text + at, sizeof text - (size_t)at, "}");
    say(text);
    hear();
    for (int i = 0; i < OBJECTS; i += 2) {
        pthread_mutex_destroy(&objects[i]->mutex);
        free(objects[i]);
    }
    say("freed");
    hear();
    return 0;
}
