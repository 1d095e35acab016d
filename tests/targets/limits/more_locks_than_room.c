/* More locks than the shared memory has room for, then two late locks that are waited for:
 * `more_locks_than_room WHO LOCKS WHAT [OWN]`. Two threads meet at the late locks; each takes OWN
 * locks of its own before.
 *
 * WHO takes all the LOCKS beforehand:
 *   both     the two threads that meet at the late locks
 *   others   the main thread alone; the two threads begin after that
 * WHAT the two threads do then:
 *   fight    take g_late by turns, TURNS times each; the holder releases g_late when the other
 *            thread sleeps; in the end alice holds g_late and bob waits
 *   cross    take g_left and g_right in opposite order
 *   end      as fight, but once each and to the end: both threads are gone
 *
 * Says "alice" and "bob" (tids), "acquisitions" of mutexes in total so far, and "contended" of
 * g_late. Ends at a line. The program uses no other locks: the threads meet by pipes.
 */
#include <stdatomic.h>

#include "../target.h"

enum { TURNS = 20 };

pthread_mutex_t g_late = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_left = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_right = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *locks;
static unsigned long lock_count, own_count;
static int crossing, ending;

struct side {
    int go[2], done[2]; /* pipes: one byte orders the next step, one byte confirms it */
    int takes_all;
    _Atomic int tid;
    pthread_mutex_t *first, *second;
    pthread_t thread;
};
static struct side alice, bob;

static void hear_from(int fd)
{
    char c;
    must(read(fd, &c, 1) == 1 ? 0 : EIO, "read");
}

static void send_byte(int fd)
{
    must(write(fd, "", 1) == 1 ? 0 : EIO, "write");
}

static void take(unsigned long first, unsigned long count)
{
    for (unsigned long i = first; i < first + count; i++) {
        pthread_mutex_lock(&locks[i]);
        pthread_mutex_unlock(&locks[i]);
    }
}

static KEPT void takes_late(void)
{
    pthread_mutex_lock(&g_late);
}

static KEPT void takes_second(struct side *self)
{
    pthread_mutex_lock(self->second);
}

/* Each step begins with one byte and ends with another. */
static void *runs(void *argument)
{
    struct side *self = argument;
    self->tid = own_tid();
    if (self->takes_all)
        take(0, lock_count);
    take(lock_count + (self == &bob ? own_count : 0), own_count);
    send_byte(self->done[1]);
    do {
        hear_from(self->go[0]);
        if (crossing)
            pthread_mutex_lock(self->first);
        else
            takes_late();
        send_byte(self->done[1]);
        hear_from(self->go[0]);
        if (crossing)
            takes_second(self);
        else
            pthread_mutex_unlock(&g_late);
        send_byte(self->done[1]);
    } while (!ending);
    return NULL;
}

static void begin(struct side *side, int takes_all)
{
    must(pipe(side->go) || pipe(side->done) ? errno : 0, "pipe");
    side->takes_all = takes_all;
    side->thread = start(runs, side, side == &alice ? "alice" : "bob");
    hear_from(side->done[0]);
}

static void step(struct side *side)
{
    send_byte(side->go[1]);
    hear_from(side->done[0]);
}

/* The number of the system call that a thread is in, -1 while the thread runs. */
static long system_call_of(int tid)
{
    char path[64], text[64] = "-1";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE *file = fopen(path, "r");
    must(file ? 0 : errno, path);
    if (!fgets(text, sizeof text, file) || text[0] == 'r') /* "running" */
        strcpy(text, "-1");
    fclose(file);
    return atol(text);
}

/* Starts a step that must wait, and returns when the thread waits. */
static void step_and_wait(struct side *side)
{
    send_byte(side->go[1]);
    while (system_call_of(side->tid) != SYS_futex)
        pause_ms(1);
}

static void say_truth(unsigned long acquisitions, unsigned long contended)
{
    char text[200];
    snprintf(text, sizeof text,
             "{\"alice\": %d, \"bob\": %d, \"acquisitions\": %lu, \"contended\": %lu}", alice.tid,
             bob.tid, acquisitions, contended);
    say(text);
    hear();
    _exit(0);
}

/* The holder releases the lock when the other thread waits. */
static void hand_over(struct side *from, struct side *to)
{
    step_and_wait(to);
    send_byte(from->go[1]);
    hear_from(from->done[0]);
    hear_from(to->done[0]);
}

static void fight(unsigned long before)
{
    step(&alice);
    for (int i = 0; i < TURNS; i++) {
        hand_over(&alice, &bob);
        hand_over(&bob, &alice);
    }
    step_and_wait(&bob);
    say_truth(before + 2 * TURNS + 1, 2 * TURNS);
}

static void cross(unsigned long before)
{
    step(&alice);
    step(&bob);
    step_and_wait(&alice);
    step_and_wait(&bob);
    say_truth(before + 2, 0);
}

static void end(unsigned long before)
{
    step(&alice);
    hand_over(&alice, &bob);
    step(&bob);
    pthread_join(alice.thread, NULL);
    pthread_join(bob.thread, NULL);
    say_truth(before + 2, 1);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int both = !strcmp(argv[1], "both");
    const char *what = argv[3];
    lock_count = strtoul(argv[2], NULL, 10);
    own_count = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    locks = calloc(lock_count + 2 * own_count, sizeof *locks);
    must(locks ? 0 : ENOMEM, "calloc");
    crossing = !strcmp(what, "cross");
    ending = !strcmp(what, "end");
    alice.first = bob.second = &g_left;
    alice.second = bob.first = &g_right;
    say("begun");
    hear();
    if (!both)
        take(0, lock_count);
    begin(&alice, both);
    begin(&bob, both);
    unsigned long before = lock_count * (both ? 2 : 1) + 2 * own_count;
    if (crossing)
        cross(before);
    else if (ending)
        end(before);
    else
        fight(before);
}
