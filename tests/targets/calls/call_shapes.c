/* Calls of many shapes, one for each name in the arguments. The program is built with
 * -finstrument-functions. At its end the program says how often it called, and waits for a line. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "../target.h"

#define PLAIN __attribute__((no_instrument_function))
#define OWN   __attribute__((noinline, noclone))

enum { ROUNDS = 100, DEEP = 300 };

static volatile long sink;
static jmp_buf back;
static sigjmp_buf back_from_handler;

static OWN void leaf(void)
{
    sink++;
}

/* ---- recursion ---- */

static OWN long recurse(long depth)
{
    if (depth == 0)
        return 1;
    long found = recurse(depth - 1);
    return found + depth;
}

static OWN void recursion(void)
{
    for (int i = 0; i < ROUNDS; i++)
        sink += recurse(4);
}

static OWN void deep(void)
{
    for (int i = 0; i < ROUNDS; i++)
        sink += recurse(DEEP);
    leaf();
}

/* ---- ways to leave a function ---- */

static OWN void jump_deeper(int depth)
{
    if (depth == 0)
        longjmp(back, 1);
    if (sink >= 0)
        jump_deeper(depth - 1);
    sink++;
}

static OWN void try_jump(void)
{
    if (!setjmp(back))
        jump_deeper(3);
    leaf();
}

static OWN void jumps(void)
{
    for (int i = 0; i < ROUNDS; i++)
        try_jump();
}

static OWN void tail_last(int value)
{
    sink += value;
}

static OWN void tail_middle(int value)
{
    tail_last(value + 1);
}

static OWN int tail_of_value(int value)
{
    sink += value;
    return value ? tail_of_value(value - 1) : 0;
}

static OWN void tails(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        tail_middle(i);
        tail_of_value(3);
        leaf();
    }
}

/* The stack is lower at the end of this function than at its begin. */
static OWN long makes_room(int depth)
{
    char *room = __builtin_alloca((size_t)(64 + 48 * depth));
    memset(room, depth, 64);
    __asm__ volatile("" : : "r"(room) : "memory");
    long below = depth ? makes_room(depth - 1) : 0;
    return below + room[3];
}

static OWN void rooms(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        sink += makes_room(5);
        leaf();
    }
}

static inline __attribute__((always_inline)) int inlined(int value)
{
    sink += value;
    return value + 1;
}

static OWN void has_inlined(int value)
{
    sink += inlined(inlined(value));
    leaf();
}

static OWN void inlines(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        sink += inlined(inlined(i));
        leaf();
        has_inlined(i);
    }
}

/* ---- signals ---- */

static OWN void handler_leaf(void)
{
    sink++;
}

static void handle(int number)
{
    (void)number;
    handler_leaf();
}

static void handle_and_jump(int number)
{
    (void)number;
    siglongjmp(back_from_handler, 1);
}

static PLAIN void on_signal(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    must(sigaction(number, &action, NULL) ? errno : 0, "sigaction");
}

static OWN void raises(void)
{
    leaf();
    raise(SIGUSR1);
    leaf();
}

static OWN void raises_and_is_left(void)
{
    if (!sigsetjmp(back_from_handler, 1)) {
        leaf();
        raise(SIGUSR2);
    }
    leaf();
}

static PLAIN void *other_stack(void)
{
    enum { SIZE = 1 << 16 };
    stack_t stack = {.ss_size = SIZE};
    stack.ss_sp = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(sigaltstack(&stack, NULL) ? errno : 0, "sigaltstack");
    return stack.ss_sp;
}

static OWN void signals(void)
{
    on_signal(SIGUSR1, handle, 0);
    for (int i = 0; i < ROUNDS; i++)
        raises();
    on_signal(SIGUSR1, handle, SA_ONSTACK);
    other_stack();
    for (int i = 0; i < ROUNDS; i++)
        raises();
    on_signal(SIGUSR2, handle_and_jump, 0);
    for (int i = 0; i < ROUNDS; i++)
        raises_and_is_left();
}

/* The handler's stack lies above the stack of this thread. */
static void *low_thread(void *handler_stack)
{
    must(sigaltstack(handler_stack, NULL) ? errno : 0, "sigaltstack");
    for (int i = 0; i < ROUNDS; i++)
        raises();
    return NULL;
}

static OWN void high_handler_stack(void)
{
    enum { SIZE = 1 << 18 };
    pthread_t thread;
    pthread_attr_t attributes;
    char *room = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_size = SIZE, .ss_sp = room + SIZE};
    on_signal(SIGUSR1, handle, SA_ONSTACK);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, room, SIZE);
    must(pthread_create(&thread, &attributes, low_thread, &stack), "pthread_create");
    pthread_join(thread, NULL);
}

static volatile sig_atomic_t handled_signals;

static void handle_often(int number)
{
    (void)number;
    handled_signals = handled_signals + 1;
    handler_leaf();
}

static OWN void interrupted(void)
{
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    on_signal(SIGALRM, handle_often, 0);
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled_signals < 2000)
        leaf();
    setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- stacks of the program's own ---- */

static ucontext_t main_context, other_context;

static OWN void yields(void)
{
    leaf();
    swapcontext(&other_context, &main_context);
    leaf();
}

static void coroutine(void)
{
    for (;;)
        yields();
}

static OWN void contexts(void)
{
    enum { SIZE = 1 << 16 };
    getcontext(&other_context);
    other_context.uc_stack.ss_sp =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    other_context.uc_stack.ss_size = SIZE;
    makecontext(&other_context, coroutine, 0);
    for (int i = 0; i < ROUNDS; i++) {
        swapcontext(&main_context, &other_context);
        leaf();
    }
}

/* ---- threads ---- */

static OWN void ends_thread(bool by_kernel)
{
    leaf();
    if (by_kernel)
        syscall(SYS_exit, 0);
    pthread_exit(NULL);
}

static void *ending(void *by_kernel)
{
    ends_thread(by_kernel != NULL);
    return NULL;
}

static void *whole(void *unused)
{
    leaf();
    return unused;
}

static OWN void threads(void)
{
    for (int i = 0; i < 2 * ROUNDS; i++)
        pthread_join(start(i % 2 ? ending : whole, i % 4 == 3 ? &i : NULL, NULL), NULL);
}

/* ---- children ---- */

static OWN void in_child(void)
{
    leaf();
    leaf();
    printf("%d\n", (int)getpid());
    fflush(stdout);
    hear();
    _exit(0);
}

static OWN void forks(void)
{
    leaf();
    pid_t child = fork();
    if (child == 0)
        in_child();
    waitpid(child, NULL, 0);
    leaf();
}

static OWN void in_vfork_child(void)
{
    _exit(0);
}

static OWN void vforks(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = vfork();
        if (child == 0)
            in_vfork_child();
        waitpid(child, NULL, 0);
        leaf();
    }
}

/* ---- tracing that is switched on in mid-call ---- */

static OWN void switched_inner(void)
{
    leaf();
    say("inner");
    hear();
    leaf();
}

static OWN void switched(void)
{
    leaf();
    switched_inner();
    leaf();
}

static OWN PLAIN bool run(const char *name)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } shapes[] = {
        {"recursion", recursion},
        {"deep", deep},
        {"jumps", jumps},
        {"tails", tails},
        {"rooms", rooms},
        {"inlines", inlines},
        {"signals", signals},
        {"high_handler_stack", high_handler_stack},
        {"interrupted", interrupted},
        {"contexts", contexts},
        {"threads", threads},
        {"forks", forks},
        {"vforks", vforks},
        {"switched", switched},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].name, name)) {
            shapes[i].run();
            return true;
        }
    return false;
}

PLAIN int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!run(argv[i]))
            return 2;
    printf("{\"rounds\": %d, \"handled_signals\": %d}\n", ROUNDS, (int)handled_signals);
    fflush(stdout);
    hear();
    return 0;
}
