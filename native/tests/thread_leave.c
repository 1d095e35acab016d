/* Tests of the state that each layer keeps for a thread: it begins anew in a forked child, and in a
 * thread that is no longer watched. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "account/account_state.h"
#include "base/tls.h"
#include "calls/call_stack.h"
#include "check.h"
#include "order/order_state.h"
#include "runtime/thread.h"
#include "stack/stack_state.h"

static struct lt_calls open_calls = {.depth = 1};

static void use_each_layer(struct lt_thread *t)
{
    lt_own.tid = 1;
    calls_state.calls = &open_calls;
    calls_state.control = 7;
    stack_registering = 2;
    account_state(t)->deferred_count = 1;
    order_state(t)->segment = 3;
}

static void has_left(void)
{
    CHECK(!lt_own.block);
    CHECK_EQUAL(lt_own.mode, MODE_NEVER);
    CHECK_EQUAL(lt_own.tid, 0);
    CHECK(!calls_state.calls);
    CHECK_EQUAL(calls_state.control, 0);
    CHECK_EQUAL(stack_registering, 0);
}

static void child_begins_anew(struct lt_thread *t)
{
    has_left();
    struct lt_thread *mine = watched();
    CHECK(mine && mine != t && mine == lt_own.block);
    CHECK_EQUAL(account_state(mine)->deferred_count, 0);
    CHECK_EQUAL(order_state(mine)->segment, 0);
}

static void parent_goes_on(struct lt_thread *t)
{
    CHECK(watched() == t);
    CHECK(calls_state.calls == &open_calls);
    CHECK_EQUAL(calls_state.control, 7);
    CHECK_EQUAL(stack_registering, 2);
    CHECK_EQUAL(account_state(t)->deferred_count, 1);
    CHECK_EQUAL(order_state(t)->segment, 3);
}

static void forks(void)
{
    struct lt_thread *t = watched();
    CHECK(t);
    use_each_layer(t);
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        child_begins_anew(t);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQUAL(status, 0);
    parent_goes_on(t);
}

static void *unwatched(void *unused)
{
    use_each_layer(watched());
    thread_unwatch();
    has_left();
    CHECK(!watched());
    return unused;
}

static void *begins_empty(void *unused)
{
    has_left();
    CHECK(watched());
    return unused;
}

static void runs_in_thread(void *(*start)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, start, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    forks();
    runs_in_thread(unwatched);
    runs_in_thread(begins_empty);
    return 0;
}
