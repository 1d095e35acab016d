/* Calls where a hook must do no harm; the first argument names the shape. The program is built with
 * -finstrument-functions, and checks itself.
 *
 *   clone        children of the bare system call run beside their parent
 *   clone_shared the same with children that share the memory and the thread-local variables
 *   loader       the first call from a library, while another thread reads the loader's list
 *   altstack     a handler on the smallest alternate stack makes the first call of its thread
 *   small        threads with the smallest stacks
 *   jumps        handlers leave any instruction of the hooks by siglongjmp
 *   migrate      coroutines go on in other threads
 *   crowd        very many threads at one time
 *   forks        handlers fork in the middle of the hooks, and other threads call meanwhile
 *   cancels      threads are cancelled asynchronously in the middle of the hooks
 *   odd          the program calls the hooks itself with odd arguments
 *   ends         constructors, destructors, exit handlers and thread-local destructors
 */
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "../target.h"

#define PLAIN __attribute__((no_instrument_function))
#define OWN   __attribute__((noinline, noclone))

enum { STACK = 64 << 10, CALLS = 2000, CLONES = 100, CROWD = 10000, DEPTH = 20 };

static _Thread_local volatile long sink;
static atomic_int over;

static OWN void leaf(void)
{
    sink++;
}

static OWN long nested(long depth)
{
    if (depth == 0)
        return 1;
    leaf();
    long found = nested(depth - 1);
    return found + depth;
}

static OWN void call_much(int rounds)
{
    for (int i = 0; i < rounds; i++)
        sink += nested(1 + i % DEPTH);
}

/* Functions that differ: each has a node of its own at the first call. */
#define FUNCTION(n)                                                                                \
    static OWN void new_##n(void)                                                                  \
    {                                                                                              \
        sink += n;                                                                                 \
        leaf();                                                                                    \
    }
#define TEN(name, n)                                                                               \
    name(n##0) name(n##1) name(n##2) name(n##3) name(n##4) name(n##5) name(n##6) name(n##7)        \
        name(n##8) name(n##9)
TEN(FUNCTION, 1)
TEN(FUNCTION, 2)
TEN(FUNCTION, 3)
#define ELEMENT(n) new_##n,
static void (*const new_functions[])(void) = {TEN(ELEMENT, 1) TEN(ELEMENT, 2) TEN(ELEMENT, 3)};
enum { NEW = sizeof new_functions / sizeof *new_functions };

static OWN void call_new(unsigned from, int depth)
{
    new_functions[from % NEW]();
    if (depth)
        call_new(from * 7 + 1, depth - 1);
    sink++;
}

/* ---- children without a fork handler ---- */

static OWN void run_clone(void)
{
    call_much(10);
    for (int i = 0; i < CLONES / 2; i++) {
        int status;
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
        if (child == 0) {
            call_much(10 * CALLS);
            call_new((unsigned)i, 6);
            syscall(SYS_exit_group, 0);
        }
        call_much(10 * CALLS);
        call_new((unsigned)i, 6);
        check_equal("waitpid", waitpid(child, &status, 0), child);
        check_equal("the child's status", status, 0);
    }
}

static int shares_all(void *unused)
{
    (void)unused;
    call_much(CALLS);
    return 0;
}

static OWN void run_clone_shared(void)
{
    static char stack[STACK] __attribute__((aligned(64)));
    for (int i = 0; i < CLONES; i++) {
        int status = -1;
        pid_t child =
            clone(shares_all, stack + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
        shares_all(NULL);
        check_equal("waitpid", waitpid(child, &status, 0), child);
        check_equal("child", status, 0);
    }
}

/* ---- the loader's list ---- */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meeting;

static PLAIN int waits_in_list(struct dl_phdr_info *info, size_t size, void *done)
{
    (void)info;
    (void)size;
    if (!*(int *)done) {
        pthread_barrier_wait(&meeting);
        pthread_mutex_lock(&guard);
        pthread_mutex_unlock(&guard);
    }
    *(int *)done = 1;
    return 0;
}

static PLAIN void *reads_list(void *done)
{
    dl_iterate_phdr(waits_in_list, done);
    return NULL;
}

static const char *library_path;

static PLAIN void run_loader(void)
{
    int done = 0;
    void *library = dlopen(library_path, RTLD_NOW);
    void (*work)(void) = library ? (void (*)(void))dlsym(library, "library_work") : NULL;
    must(work ? 0 : ENOENT, "dlopen");
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_mutex_lock(&guard);
    pthread_t thread;
    must(pthread_create(&thread, NULL, reads_list, &done), "pthread_create");
    pthread_barrier_wait(&meeting);
    work();
    pthread_mutex_unlock(&guard);
    pthread_join(thread, NULL);
    check_equal("done", done, 1);
}

/* ---- small stacks ---- */

static void on_small_stack(int number)
{
    (void)number;
    leaf();
}

static PLAIN void *raises_on_small_stack(void *unused)
{
    size_t size = getauxval(AT_MINSIGSTKSZ) + 1024, page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (size + page - 1) / page * page;
    char *room =
        mmap(NULL, page + pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(room == MAP_FAILED || mprotect(room, page, PROT_NONE) ? errno : 0, "mmap");
    stack_t stack = {.ss_sp = room + page, .ss_size = size};
    must(sigaltstack(&stack, NULL) ? errno : 0, "sigaltstack");
    raise(SIGUSR1);
    raise(SIGUSR1);
    return unused;
}

static PLAIN void run_altstack(void)
{
    struct sigaction action = {.sa_handler = on_small_stack, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 20; i++)
        pthread_join(start(raises_on_small_stack, NULL, NULL), NULL);
}

static void *calls(void *rounds)
{
    call_much((int)(intptr_t)rounds);
    call_new((unsigned)(intptr_t)rounds, 5);
    return NULL;
}

static OWN void run_small(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    must(pthread_attr_setstacksize(&attributes, 16384), "stack size");
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        must(pthread_create(&thread, &attributes, calls, (void *)(intptr_t)(50 + i)), "create");
        pthread_join(thread, NULL);
    }
}

/* ---- handlers that leave the hooks ---- */

static sigjmp_buf way_out;
static volatile sig_atomic_t may_jump, jumps;

static void jump_out(int number)
{
    (void)number;
    leaf();
    if (may_jump) {
        may_jump = 0;
        jumps = jumps + 1;
        siglongjmp(way_out, 1);
    }
}

static PLAIN void often(void (*handler)(int), long us)
{
    struct itimerval times = {{0, us}, {0, us}};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &times, NULL);
}

static OWN void run_jumps(void)
{
    static volatile unsigned from;
    often(jump_out, 50);
    while (jumps < 3000) {
        if (sigsetjmp(way_out, 1) == 0) {
            may_jump = 1;
            for (;;)
                call_new(from++, 7);
        }
    }
    often(SIG_IGN, 0);
    for (int i = 0; i < CALLS; i++)
        new_10();
}

/* ---- coroutines ---- */

static ucontext_t schedulers[2], wanderers[2];
static char stacks[2][STACK] __attribute__((aligned(64)));
static pthread_barrier_t swap;

static OWN void wander(int self, int depth)
{
    leaf();
    if (depth)
        wander(self, depth - 1);
    swapcontext(&wanderers[self], &schedulers[self]);
    leaf();
}

static void wanderer(int self)
{
    for (int i = 0; i < 1000; i++)
        wander(self, i % 6);
    over++;
    for (;;)
        swapcontext(&wanderers[self], &schedulers[self]);
}

static OWN void *carries(void *number)
{
    int self = (int)(intptr_t)number;
    while (over < 2) {
        swapcontext(&schedulers[self], &wanderers[self]);
        pthread_barrier_wait(&swap);
        self = !self;
        leaf();
    }
    return NULL;
}

static PLAIN void run_migrate(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&swap, NULL, 2);
    for (int i = 0; i < 2; i++) {
        getcontext(&wanderers[i]);
        wanderers[i].uc_stack.ss_sp = stacks[i];
        wanderers[i].uc_stack.ss_size = STACK;
        makecontext(&wanderers[i], (void (*)(void))wanderer, 1, i);
    }
    for (int i = 0; i < 2; i++)
        threads[i] = start(carries, (void *)(intptr_t)i, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* ---- crowds, forks and cancellations ---- */

static void *member(void *unused)
{
    leaf();
    nested(3);
    pthread_barrier_wait(&meeting);
    leaf();
    return unused;
}

static PLAIN void run_crowd(void)
{
    static pthread_t threads[CROWD];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32768);
    pthread_barrier_init(&meeting, NULL, CROWD + 1);
    for (int i = 0; i < CROWD; i++)
        must(pthread_create(&threads[i], &attributes, member, NULL), "pthread_create");
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
}

static void *calls_until_over(void *unused)
{
    for (unsigned i = 0; !over; i++) {
        call_much(10);
        call_new(i, 6);
    }
    return unused;
}

static volatile sig_atomic_t forks;

static void fork_in_handler(int number)
{
    int status = 0;
    (void)number;
    leaf();
    pid_t child =
        forks % 3 == 2 ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L) : fork();
    if (child == 0) {
        call_much(5);
        call_new(3, 6);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    check_equal("status of a child", status, 0);
    forks = forks + 1;
}

static OWN void run_forks(void)
{
    pthread_t threads[2];
    sigset_t often_signal;
    sigemptyset(&often_signal);
    sigaddset(&often_signal, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &often_signal, NULL);
    for (int i = 0; i < 2; i++)
        threads[i] = start(calls_until_over, NULL, NULL);
    pthread_sigmask(SIG_UNBLOCK, &often_signal, NULL);
    often(fork_in_handler, 500);
    for (unsigned i = 0; forks < 150; i++)
        call_new(i, 7);
    often(SIG_IGN, 0);
    over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void *calls_until_cancelled(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (unsigned i = 0;; i++)
        call_new(i, 7);
    return unused;
}

static OWN void run_cancels(void)
{
    for (int i = 0; i < 300; i++) {
        pthread_t thread = start(calls_until_cancelled, NULL, NULL);
        for (int k = 0; k < i * 5; k++)
            leaf();
        must(pthread_cancel(thread), "pthread_cancel");
        pthread_join(thread, NULL);
    }
}

/* ---- odd calls of the hooks ---- */

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static PLAIN void run_odd(void)
{
    static const uintptr_t odd[] = {0, 1, 8, UINTPTR_MAX, 1ull << 63, (1ull << 63) - 1, 0x400000};
    enum { ODD = sizeof odd / sizeof *odd };
    for (int i = 0; i < 20000; i++) {
        void *function = (void *)odd[i % ODD], *site = (void *)odd[i / ODD % ODD];
        if (i % 5 < 3)
            __cyg_profile_func_enter(function, site);
        else
            __cyg_profile_func_exit(function, site);
    }
    for (int i = 0; i < 1000; i++)
        __cyg_profile_func_exit((void *)(uintptr_t)leaf, NULL);
    leaf();
}

/* ---- begins and ends ---- */

static int early;
static pthread_key_t key;

static int chosen(void)
{
    leaf();
    return 7;
}

/* The loader calls this while it relocates the program. */
static int (*choose(void))(void)
{
    return chosen;
}
int indirect(void) __attribute__((ifunc("choose")));

__attribute__((constructor(101))) static void constructed(void)
{
    leaf();
    early++;
}

static void at_end(void)
{
    leaf();
    nested(5);
}

__attribute__((destructor(101))) static void destructed(void)
{
    leaf();
    nested(5);
}

static void of_key(void *rounds)
{
    call_much(5);
    if (rounds != (void *)1)
        pthread_setspecific(key, (char *)rounds - 1);
}

static void *sets_key(void *unused)
{
    pthread_setspecific(key, (void *)3);
    leaf();
    return unused;
}

static PLAIN void run_ends(void)
{
    check_equal("constructor", early, 1);
    check_equal("ifunc", indirect(), 7);
    must(pthread_key_create(&key, of_key), "key");
    for (int i = 0; i < 200; i++)
        pthread_join(start(sets_key, NULL, NULL), NULL);
    atexit(at_end);
}

PLAIN int main(int argc, char **argv)
{
    library_path = argc > 2 ? argv[2] : "";
    static const struct {
        const char *name;
        void (*run)(void);
    } shapes[] = {
        {"clone", run_clone},       {"clone_shared", run_clone_shared},
        {"loader", run_loader},     {"small", run_small},
        {"altstack", run_altstack}, {"jumps", run_jumps},
        {"crowd", run_crowd},       {"migrate", run_migrate},
        {"forks", run_forks},       {"cancels", run_cancels},
        {"odd", run_odd},           {"ends", run_ends},
    };
    for (size_t i = 0; argc > 1 && i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].name, argv[1]))
            shapes[i].run();
    return verdict_and_stay();
}
