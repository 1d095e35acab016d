/* Semaphores change hands, as lines on stdin order:
 *
 *     get HAND SEM, post HAND SEM (whichever thread has the unit; -1: the main thread posts),
 *     renew 0 SEM, end HAND 0 (another thread begins)
 *
 * After each line the program says the holder of each semaphore by tid (0: no thread). A thread
 * that ended may be a holder. The program also says the wait of each hand, and the tids of the
 * threads. Hands wait for orders in read().
 */
#include <semaphore.h>

#include "../target.h"

enum { HANDS = 5, SEMS = 3, NONE = -1 };

struct order {
    char what[8];
    int hand, sem;
};

static sem_t sems[SEMS];
static int has[SEMS]; /* tid */
static struct hand {
    pthread_t thread;
    int tid, orders[2], is_free, wants;
} hands[HANDS];

static void post(int sem)
{
    has[sem] = 0;
    must(sem_post(&sems[sem]), "sem_post");
}

static KEPT void get(struct hand *self, int sem)
{
    self->wants = sem;
    while (sem_wait(&sems[sem]) != 0)
        continue;
    self->wants = NONE;
    has[sem] = self->tid;
}

static void *wait_for_orders(void *argument)
{
    struct hand *self = argument;
    struct order order;
    __atomic_store_n(&self->tid, own_tid(), __ATOMIC_SEQ_CST);
    while (read(self->orders[0], &order, sizeof order) == sizeof order &&
           strcmp(order.what, "end")) {
        if (!strcmp(order.what, "get"))
            get(self, order.sem);
        else
            post(order.sem);
        __atomic_store_n(&self->is_free, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void begin(struct hand *hand)
{
    *hand = (struct hand){.is_free = 1, .wants = NONE};
    must(pipe(hand->orders), "pipe");
    hand->thread = start(wait_for_orders, hand, NULL);
    while (!__atomic_load_n(&hand->tid, __ATOMIC_SEQ_CST))
        sched_yield();
}

static void end(struct hand *hand)
{
    must(pthread_join(hand->thread, NULL), "pthread_join");
    close(hand->orders[0]);
    close(hand->orders[1]);
}

/* The hand sleeps for a semaphore that no hand has: a woken hand takes the unit soon. */
static int waits(const struct hand *hand)
{
    int value = 1, wants = __atomic_load_n(&hand->wants, __ATOMIC_SEQ_CST);
    if (wants != NONE)
        sem_getvalue(&sems[wants], &value);
    return value == 0 && is_asleep(hand->tid);
}

static void settle(void)
{
    for (int pass = 0; pass < 2; pass++) /* a post may wake a hand that was already checked */
        for (struct hand *hand = hands; hand < hands + HANDS; hand++)
            while (!__atomic_load_n(&hand->is_free, __ATOMIC_SEQ_CST) && !waits(hand))
                sched_yield();
}

static void say_all(void)
{
    char text[512];
    int n = sprintf(text, "{\"has\": {");
    for (int i = 0; i < SEMS; i++)
        n += sprintf(text + n, "%s\"%lu\": %d", i ? ", " : "", (unsigned long)&sems[i], has[i]);
    n += sprintf(text + n, "}, \"wants\": [");
    for (int i = 0; i < HANDS; i++)
        n += sprintf(text + n, "%s%d", i ? ", " : "", hands[i].wants);
    n += sprintf(text + n, "], \"tids\": [");
    for (int i = 0; i < HANDS; i++)
        n += sprintf(text + n, "%s%d", i ? ", " : "", hands[i].tid);
    sprintf(text + n, "]}");
    say(text);
}

static void pass_on(const struct order *order)
{
    if (order->hand < 0) {
        post(order->sem);
        return;
    }
    if (!strcmp(order->what, "renew")) {
        has[order->sem] = 0;
        must(sem_destroy(&sems[order->sem]), "sem_destroy");
        must(sem_init(&sems[order->sem], 0, 1), "sem_init");
        return;
    }
    struct hand *hand = &hands[order->hand];
    hand->is_free = 0;
    must(write(hand->orders[1], order, sizeof *order) != sizeof *order, "write");
    if (!strcmp(order->what, "end")) {
        end(hand);
        begin(hand);
    }
}

int main(void)
{
    struct order order;
    for (int i = 0; i < SEMS; i++)
        must(sem_init(&sems[i], 0, 1), "sem_init");
    for (int i = 0; i < HANDS; i++)
        begin(&hands[i]);
    say_all();
    while (scanf("%7s %d %d", order.what, &order.hand, &order.sem) == 3) {
        pass_on(&order);
        settle();
        say_all();
    }
    return 0;
}
