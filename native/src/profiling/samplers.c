/* Samplers: a timer for each profile and thread, and the signal handler. */
#include "profiling/samplers.h"

#include <errno.h>
#include <fcntl.h>
#include <locktop.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "base/sys.h"
#include "profiling/perf_ring.h"
#include "profiling/profile_lock.h"
#include "profiling/sources.h"
#include "shm/segment.h"

enum {
    SAMPLERS_MAX = 1 << 16,
    DRAIN_NS = 20000000 /* of CPU time: a ring holds 4,096 samples */
};

struct sampler {
    struct profile *profile; /* NULL: free */
    uint32_t busy;           /* some thread uses the entry */
    uint32_t tag;            /* differs for each use: a late signal finds another one */
    uint32_t tid;
    int timer;
    struct perf_ring ring;
};

static struct sampler *samplers; /* SAMPLERS_MAX of them */
static uint32_t top;             /* entries that were ever used */
static uint32_t first_free;      /* all entries before are in use */
uint32_t samplers_in_use;
static int signal_number;

/* ---- the signal ---- */

static bool sampler_enter(struct sampler *sampler)
{
    return !__atomic_exchange_n(&sampler->busy, 1, __ATOMIC_ACQUIRE);
}

static void sampler_leave(struct sampler *sampler)
{
    __atomic_store_n(&sampler->busy, 0, __ATOMIC_RELEASE);
}

/* Waits for a handler of another thread, which never blocks. */
static void sampler_seize(struct sampler *sampler)
{
    while (!sampler_enter(sampler))
        profile_lock_pause();
}

static uintptr_t instruction_of(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

/* Calls no function of libc: errno stays, and nothing is locked. A signal that some thread sent by
 * itself is ignored. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    if (info->si_code != SI_TIMER || (uint32_t)value >= __atomic_load_n(&top, __ATOMIC_ACQUIRE))
        return;
    struct sampler *sampler = &samplers[(uint32_t)value];
    if (!sampler_enter(sampler))
        return; /* another thread drains the ring, or ends the sampler */
    const struct profile *profile = sampler->profile;
    if (profile && sampler->tag == value >> 32 && profile_is_running(profile)) {
        if (sampler->ring.page) {
            perf_ring_drain(&sampler->ring, profile);
        } else {
            profile_count(profile, instruction_of(context));
            if (info->si_overrun > 0)
                profile_add(&profile->shared->lost, (uint64_t)info->si_overrun);
        }
    }
    sampler_leave(sampler);
}

static bool is_ours(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_flags & SA_SIGINFO &&
           action.sa_sigaction == on_signal;
}

bool samplers_have_signal(void)
{
    return !signal_number || is_ours(signal_number);
}

/* A real-time signal of which the program makes no use, the highest first: programs count from
 * SIGRTMIN. The very last one comes last, because debuggers use it. SIGPROF stays the program's.
 * The handler stays installed, for a late signal would end the process. */
int samplers_take_signal(uint64_t blocked)
{
    if (signal_number && is_ours(signal_number))
        return LOCKTOP_OK;
    signal_number = 0;
    for (int next = SIGRTMAX - 1; next >= SIGRTMIN - 1; next--) {
        int number = next < SIGRTMIN ? SIGRTMAX : next;
        struct sigaction before, ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
        if (blocked >> (number - 1) & 1 || sigaction(number, NULL, &before) != 0 ||
            before.sa_flags & SA_SIGINFO || before.sa_handler != SIG_DFL)
            continue;
        ours.sa_sigaction = on_signal;
        sigfillset(&ours.sa_mask);
        if (sigaction(number, &ours, NULL) != 0)
            continue;
        signal_number = number;
        return LOCKTOP_OK;
    }
    return LOCKTOP_NO_SIGNAL;
}

uint64_t samplers_blocked_by(uint32_t tid)
{
    char path[48], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%u/status", tid);
    long fd = sys_call6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return UINT64_MAX;
    long count = sys_call3(SYS_read, fd, (long)text, sizeof text - 1);
    sys_call3(SYS_close, fd, 0, 0);
    text[count > 0 ? count : 0] = 0;
    const char *line = strstr(text, "\nSigBlk:\t");
    unsigned long long blocked;
    return line && sscanf(line, "\nSigBlk:\t%llx", &blocked) == 1 ? blocked : UINT64_MAX;
}

/* ---- samplers ---- */

static bool table_make(void)
{
    if (samplers)
        return true;
    long memory =
        sys_call6(SYS_mmap, 0, (long)(SAMPLERS_MAX * sizeof *samplers), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory < 0 && memory > -4096)
        return false;
    samplers = (struct sampler *)memory;
    return true;
}

static struct sampler *sampler_take(void)
{
    if (!table_make())
        return NULL;
    for (; first_free < top; first_free++)
        if (!samplers[first_free].profile)
            return &samplers[first_free];
    if (top == SAMPLERS_MAX)
        return NULL;
    __atomic_store_n(&top, top + 1, __ATOMIC_RELEASE);
    return &samplers[top - 1];
}

/* The clock of the CPU time of one thread (MAKE_THREAD_CPUCLOCK in the kernel). */
static clockid_t clock_of(uint32_t tid)
{
    return (clockid_t)(~tid << 3 | 6);
}

/* The time until the first sample of a timer. If each timer began with a whole interval, shorter
 * threads and runs would have no samples. So the time is any part of the interval. The multiples of
 * the golden ratio spread the parts evenly. The kernel looks at a timer half a tick late on
 * average. */
static uint64_t first_interval(uint64_t interval)
{
    static uint64_t spread;
    uint64_t phase = __atomic_add_fetch(&spread, 0x9e3779b97f4a7c15, __ATOMIC_RELAXED);
    uint64_t part = (phase >> 32) * interval >> 32, late = profile_tick_ns() / 2;
    return part > late ? part - late : 1;
}

static struct timespec span_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static int timer_make(struct sampler *sampler, uint64_t first, uint64_t interval)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal_number};
    uint64_t index = (uint64_t)(sampler - samplers);
    event.sigev_value.sival_ptr = (void *)(uintptr_t)((uint64_t)sampler->tag << 32 | index);
    event._sigev_un._tid = (pid_t)sampler->tid;
    if (sys_call3(SYS_timer_create, clock_of(sampler->tid), (long)&event, (long)&sampler->timer) !=
        0)
        return LOCKTOP_LIMIT;
    struct itimerspec times = {.it_value = span_of(first), .it_interval = span_of(interval)};
    sys_call6(SYS_timer_settime, sampler->timer, 0, (long)&times, 0, 0, 0);
    return LOCKTOP_OK;
}

int sampler_add(struct profile *profile, uint32_t tid, uint64_t blocked)
{
    bool is_timer = profile->source == LT_SOURCE_TIMER;
    if (blocked >> (signal_number - 1) & 1)
        return LOCKTOP_NO_SIGNAL; /* the thread might fetch the signal itself (sigwait) */
    struct sampler *sampler = sampler_take();
    if (!sampler)
        return LOCKTOP_LIMIT;
    sampler_seize(sampler);
    sampler->tag++;
    sampler->tid = tid;
    sampler->ring.page = NULL;
    int code = is_timer ? LOCKTOP_OK : perf_ring_open(&sampler->ring, profile, tid);
    if (code == LOCKTOP_OK) {
        uint64_t interval = is_timer ? profile->interval : DRAIN_NS;
        code = timer_make(sampler, is_timer ? first_interval(interval) : interval, interval);
        if (code != LOCKTOP_OK && sampler->ring.page)
            perf_ring_close(&sampler->ring);
    }
    if (code == LOCKTOP_OK) {
        sampler->profile = profile;
        __atomic_fetch_add(&samplers_in_use, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&profile->shared->threads, 1, __ATOMIC_RELAXED);
    }
    sampler_leave(sampler);
    return code;
}

/* A program that confined itself may be killed by a system call. Then the timer goes on, and its
 * signals find no sampler. */
static void sampler_end(struct sampler *sampler)
{
    bool is_sealed = shm_is_sealed();
    if (!is_sealed)
        sys_call3(SYS_timer_delete, sampler->timer, 0, 0);
    sampler_seize(sampler);
    if (sampler->ring.page) {
        perf_ring_drain(&sampler->ring, sampler->profile);
        if (!is_sealed)
            perf_ring_close(&sampler->ring);
    }
    __atomic_fetch_sub(&sampler->profile->shared->threads, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&samplers_in_use, 1, __ATOMIC_RELAXED);
    sampler->profile = NULL;
    sampler->tag++;
    if (sampler - samplers < first_free)
        first_free = (uint32_t)(sampler - samplers);
    sampler_leave(sampler);
}

bool sampler_exists(const struct profile *profile, uint32_t tid)
{
    for (uint32_t i = 0; i < top; i++)
        if (samplers[i].profile == profile && samplers[i].tid == tid)
            return true;
    return false;
}

void samplers_end_profile(const struct profile *profile)
{
    for (uint32_t i = 0; i < top; i++)
        if (samplers[i].profile == profile)
            sampler_end(&samplers[i]);
}

void samplers_end_thread(uint32_t tid)
{
    for (uint32_t i = 0; i < top; i++)
        if (samplers[i].profile && samplers[i].tid == tid)
            sampler_end(&samplers[i]);
}

bool sampler_thread_is_gone(uint32_t tid)
{
    return sys_call3(SYS_tgkill, sys_getpid(), tid, 0) == -ESRCH;
}

void samplers_end_dead(void)
{
    for (uint32_t i = 0; i < top; i++)
        if (samplers[i].profile && sampler_thread_is_gone(samplers[i].tid))
            sampler_end(&samplers[i]);
}

void samplers_drain(const struct profile *profile)
{
    for (uint32_t i = 0; i < top; i++) {
        struct sampler *sampler = &samplers[i];
        if (sampler->profile != profile || !sampler->ring.page)
            continue;
        sampler_seize(sampler);
        perf_ring_drain(&sampler->ring, profile);
        sampler_leave(sampler);
    }
}

void samplers_forget(void)
{
    for (uint32_t i = 0; i < top; i++) {
        samplers[i].profile = NULL;
        samplers[i].ring.page = NULL;
        samplers[i].busy = 0;
        samplers[i].tag++;
    }
    samplers_in_use = first_free = 0;
}
