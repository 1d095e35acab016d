/* Unusual control flow: `unusual_control_flow HOW`.
 *
 *   coroutines   swapcontext between stacks of one thread, with locks held across the switches
 *   migrate      a coroutine locks in one thread and continues in another
 *   longjmp      out of critical sections and, by siglongjmp, out of a wait
 *   altstack     handlers on the smallest alternate stack post while the thread fights for locks
 *   mainexit     the main thread ends by pthread_exit while other threads continue
 *   exit         exit() while threads wait and hold
 *   quickexit    quick_exit(), whose handlers lock
 *   abort        abort() with locks held, in a child
 *   daemon       continues in the background: the child of a parent that ends
 *   clone        children of the bare clone() that share the memory, beside their parent
 */
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "../target.h"

enum { STACK = 64 << 10, ROUNDS = 2000, SWITCHES = 200, JUMPS = 300, THREADS = 3, CLONES = 20 };

pthread_mutex_t g_across = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_inside = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t fought_for = PTHREAD_MUTEX_INITIALIZER;
static ucontext_t scheduler, coroutines[2];
static char stacks[2][STACK];
static sem_t turn, never, posts, baton;
static __thread volatile int has_baton;
static atomic_int switches, over, tid;

/* ---- coroutines ---- */

static void coroutine(void)
{
    int self = switches % 2;
    for (int i = 0; i < SWITCHES; i++) {
        pthread_mutex_t *held = self ? &g_across : &g_inside;
        check_equal("lock", pthread_mutex_lock(held), 0);
        switches++;
        swapcontext(&coroutines[self], &scheduler);
        check_equal("unlock", pthread_mutex_unlock(held), 0);
        pthread_mutex_lock(&fought_for);
        sched_yield();
        pthread_mutex_unlock(&fought_for);
    }
}

static void make(int number, void (*run)(void))
{
    getcontext(&coroutines[number]);
    coroutines[number].uc_stack.ss_sp = stacks[number];
    coroutines[number].uc_stack.ss_size = STACK;
    coroutines[number].uc_link = &scheduler;
    makecontext(&coroutines[number], run, 0);
}

static void *fights(void *argument)
{
    while (!over) {
        pthread_mutex_lock(&fought_for);
        sched_yield();
        pthread_mutex_unlock(&fought_for);
    }
    return argument;
}

static void run_coroutines(void)
{
    pthread_t thread = start(fights, NULL, NULL);
    make(0, coroutine);
    make(1, coroutine);
    for (int i = 0; i < 2 * (SWITCHES + 1); i++)
        swapcontext(&scheduler, &coroutines[i % 2]);
    check_equal("switches", switches, 2 * SWITCHES);
    over = 1;
    pthread_join(thread, NULL);
}

static void wanderer(void)
{
    for (int i = 0; i < SWITCHES; i++) {
        pthread_mutex_lock(&g_across);
        swapcontext(&coroutines[0], &scheduler);
        pthread_mutex_unlock(&g_across); /* by another thread: a plain mutex permits this */
        swapcontext(&coroutines[0], &scheduler);
    }
    over = 1;
}

static void *carries_on(void *argument)
{
    sem_t *own = argument;
    for (;;) {
        sem_wait(own);
        if (!over)
            swapcontext(&scheduler, &coroutines[0]);
        sem_post(own == &turn ? &posts : &turn);
        if (over)
            return argument;
    }
}

static void migrate(void)
{
    make(0, wanderer);
    pthread_t other = start(carries_on, &posts, NULL);
    sem_post(&turn);
    carries_on(&turn);
    pthread_join(other, NULL);
}

/* ---- jumps ---- */

static jmp_buf back;
static sigjmp_buf out_of_wait;

static KEPT void jump_while_holding(void)
{
    pthread_mutex_lock(&g_across);
    longjmp(back, 1);
}

static void leave_wait(int signal)
{
    (void)signal;
    siglongjmp(out_of_wait, 1);
}

static void *wakes(void *argument)
{
    pthread_t who = *(pthread_t *)argument;
    for (int i = 0; i < JUMPS; i++) {
        sem_wait(&posts);
        while (!is_asleep(tid))
            sched_yield();
        pthread_kill(who, SIGUSR1);
    }
    return argument;
}

static void jump(void)
{
    static volatile int times, left;
    static pthread_t self;
    tid = own_tid();
    self = pthread_self();
    for (times = 0; times < JUMPS; times++)
        if (setjmp(back) == 0)
            jump_while_holding();
        else
            check_equal("unlock after the jump", pthread_mutex_unlock(&g_across), 0);
    signal(SIGUSR1, leave_wait);
    pthread_t thread = start(wakes, &self, NULL);
    for (times = 0; times < JUMPS; times++)
        if (sigsetjmp(out_of_wait, 1) == 0) {
            sem_post(&posts);
            sem_wait(&never);
        } else {
            left++;
            check_equal("lock after the jump", pthread_mutex_lock(&g_across), 0);
            check_equal("unlock after it", pthread_mutex_unlock(&g_across), 0);
        }
    check_equal("waits left", left, JUMPS);
    pthread_join(thread, NULL);
}

/* ---- handlers on a stack of their own ---- */

static void posts_from_small_stack(int signal)
{
    (void)signal;
    if (has_baton)
        sem_post(&baton); /* another thread mostly waits for it */
    else
        sem_post(&posts);
}

static void *fights_on_alternate_stack(void *argument)
{
    size_t size = getauxval(AT_MINSIGSTKSZ) + 1024, page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (size + page - 1) / page * page;
    char *room =
        mmap(NULL, page + pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(room == MAP_FAILED || mprotect(room, page, PROT_NONE) ? errno : 0, "mmap");
    /* Down to the guard page, which stops an overflow. */
    stack_t stack = {.ss_sp = room + page, .ss_size = size};
    must(sigaltstack(&stack, NULL) ? errno : 0, "sigaltstack");
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&fought_for);
        raise(SIGUSR2);
        pthread_mutex_unlock(&fought_for);
        sem_wait(&baton);
        has_baton = 1;
        sched_yield();
        raise(SIGUSR2);
        has_baton = 0;
    }
    stack_t now_there;
    sigaltstack(NULL, &now_there);
    check_equal("alternate stack", now_there.ss_sp == stack.ss_sp, 1);
    return argument;
}

static void on_alternate_stacks(void)
{
    pthread_t threads[THREADS];
    int value;
    struct sigaction action = {.sa_handler = posts_from_small_stack, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, NULL);
    sem_post(
        &posts); /* the loader's stack for symbol binding must not come from the alternate stack */
    sem_wait(&posts);
    sem_init(&baton, 0, 1);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(fights_on_alternate_stack, NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sem_getvalue(&posts, &value);
    check_equal("posts", value, THREADS * ROUNDS);
}

/* ---- ends ---- */

static void *outlives_main(void *argument)
{
    pthread_t first = *(pthread_t *)argument;
    check_equal("join of main's thread", pthread_join(first, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&g_across);
        pthread_mutex_unlock(&g_across);
    }
    exit(verdict_and_stay());
}

static void end_main_only(void)
{
    static pthread_t self;
    self = pthread_self();
    start(outlives_main, &self, NULL);
    pthread_exit(NULL);
}

static void *holds_for_ever(void *argument)
{
    pthread_mutex_lock(&g_inside);
    sem_post(&posts);
    sem_wait(&never);
    return argument;
}

static void *wants_for_ever(void *argument)
{
    sem_post(&posts);
    pthread_mutex_lock(&g_inside);
    return argument;
}

static void lock_at_exit(void)
{
    pthread_mutex_lock(&g_across);
    pthread_mutex_unlock(&g_across);
    say(failures ? "failed" : "ok");
}

static void start_some_that_never_end(void)
{
    start(holds_for_ever, NULL, NULL);
    sem_wait(&posts);
    for (int i = 0; i < THREADS; i++)
        start(wants_for_ever, NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        sem_wait(&posts);
    start(fights, NULL, NULL);
}

static void abort_in_child(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        start_some_that_never_end();
        abort();
    }
    check_equal("waitpid", waitpid(child, &status, 0), child);
    check_equal("signal", WTERMSIG(status), SIGABRT);
}

static void go_to_background(void)
{
    start_some_that_never_end();
    int to_me[2];
    must(pipe(to_me) ? errno : 0, "pipe");
    pid_t child = fork(); /* so that daemon() ends the child, not this process */
    if (child == 0) {
        must(daemon(1, 1) ? errno : 0, "daemon");
        pthread_mutex_init(&fought_for, NULL); /* another thread may hold the lock */
        pthread_t thread = start(fights, NULL, NULL);
        for (int i = 0; i < ROUNDS; i++) {
            pthread_mutex_lock(&fought_for);
            pthread_mutex_unlock(&fought_for);
        }
        over = 1;
        pthread_join(thread, NULL);
        _exit(write(to_me[1], "d", 1) != 1);
    }
    char c = 0;
    int status = 0;
    check_equal("waitpid", waitpid(child, &status, 0), child);
    check_equal("the parent that ends", status, 0);
    check_equal("from the background", read(to_me[0], &c, 1) == 1 && c == 'd', 1);
}

/* ---- the bare clone ---- */

static int shares_all(void *argument)
{
    pthread_mutex_t *own = argument;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(own);
        pthread_mutex_unlock(own);
    }
    return 0;
}

/* Such a child shares the thread-local memory of its parent. libc does not support that, but the
 * plain locks of libc work. */
static void clone_barely(void)
{
    pthread_mutex_t of_child = PTHREAD_MUTEX_INITIALIZER, of_parent = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < CLONES; i++) {
        int status = -1;
        pid_t child = clone(shares_all, stacks[0] + STACK,
                            CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, &of_child);
        shares_all(&of_parent);
        check_equal("waitpid", waitpid(child, &status, 0), child);
        check_equal("child", status, 0);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    sem_init(&turn, 0, 0);
    sem_init(&never, 0, 0);
    sem_init(&posts, 0, 0);
    if (!strcmp(how, "coroutines"))
        run_coroutines();
    else if (!strcmp(how, "migrate"))
        migrate();
    else if (!strcmp(how, "longjmp"))
        jump();
    else if (!strcmp(how, "altstack"))
        on_alternate_stacks();
    else if (!strcmp(how, "mainexit"))
        end_main_only();
    else if (!strcmp(how, "abort"))
        abort_in_child();
    else if (!strcmp(how, "daemon"))
        go_to_background();
    else if (!strcmp(how, "clone"))
        clone_barely();
    else if (!strcmp(how, "exit") && atexit(lock_at_exit) == 0) {
        start_some_that_never_end();
        exit(0);
    } else if (!strcmp(how, "quickexit") && at_quick_exit(lock_at_exit) == 0) {
        start_some_that_never_end();
        quick_exit(0);
    }
    return verdict_and_stay();
}
