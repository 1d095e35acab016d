/* Waits through syscall() at futex words. The words and the bytes around them look like objects of
 * the C library. There are two mutexes that seem to cross, a semaphore, the end of a thread, and a
 * barrier. Says the tids of the threads that wait.
 */
#include <linux/futex.h>
#include <stdatomic.h>

#include "../target.h"

struct mine {
    _Atomic unsigned word;
    unsigned count;
    unsigned id;
    unsigned users;
    char rest[112];
};

static struct mine first __attribute__((aligned(64))), second __attribute__((aligned(64)));
static struct mine event __attribute__((aligned(64))), number __attribute__((aligned(64)));
static struct mine turns __attribute__((aligned(64)));
static _Atomic int tids[5];

static void wait_at(_Atomic unsigned *word, int operation)
{
    unsigned value = atomic_load(word);
    while (atomic_load(word) == value)
        syscall(SYS_futex, word, operation, value, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void *run(void *argument)
{
    int which = *(int *)argument;
    atomic_store(&tids[which], own_tid());
    while (!atomic_load(&tids[1 - (which & 1)]))
        continue;
    switch (which) {
    case 0:
        second.id = (unsigned)own_tid();
        wait_at(&first.word, FUTEX_WAIT_PRIVATE);
        break;
    case 1:
        first.id = (unsigned)own_tid();
        wait_at(&second.word, FUTEX_WAIT_PRIVATE);
        break;
    case 2: wait_at(&event.word, FUTEX_WAIT_BITSET_PRIVATE); break;
    case 3:
        atomic_store(&number.word, (unsigned)getpid());
        wait_at(&number.word, FUTEX_WAIT_BITSET);
        break;
    default: wait_at((_Atomic unsigned *)&turns.count, FUTEX_WAIT_PRIVATE);
    }
    return NULL;
}

int main(void)
{
    static int which[5];
    first.word = second.word = 2;
    first.users = second.users = 1;
    event.count = 5;
    turns.word = 1;
    turns.id = 4;
    for (int i = 0; i < 5; i++) {
        which[i] = i;
        start(run, &which[i], "waits");
    }
    for (int i = 0; i < 5; i++)
        while (!tids[i] || !is_asleep(tids[i]))
            pause_ms(1);
    char line[100];
    snprintf(line, sizeof line, "[%d, %d, %d, %d, %d]", tids[0], tids[1], tids[2], tids[3],
             tids[4]);
    say(line);
    hear();
}
