/* Begins the watch of a process, and follows the process through fork and exit. */
#include "runtime/process.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "account/misuse.h"
#include "base/clock.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/tls.h"
#include "calls/call_filter.h"
#include "calls/call_stack.h"
#include "order/lock_order.h"
#include "profiling/profiles.h"
#include "runtime/child_filter.h"
#include "runtime/thread.h"
#include "shm/control.h"
#include "shm/file.h"
#include "shm/segment.h"
#include "shm/stale_files.h"
#include "stack/capture.h"
#include "tables/conditions.h"
#include "tables/custom_locks.h"
#include "tables/held_list.h"
#include "tables/inherited_semaphores.h"
#include "tables/lock_names.h"
#include "tables/lock_table.h"
#include "tables/stack_table.h"
#include "tables/thread_table.h"

/* The locks that the forking thread holds. Copied before the fork: child and parent share the held
 * lists, and the parent goes on. The child does not know of further locks. */
enum { INHERITED_MAX = 8 };
struct inherited {
    uint64_t key;
    uint64_t site;
    uint16_t depth;
    uint16_t flags;
};
static __thread struct inherited inherited[INHERITED_MAX];
static __thread uint32_t inherited_count;

static uint32_t (*read_tid)(void);
static bool forks_watched;

/* Writes to standard error, and only if the environment asks for that. */
static void say(const char *what)
{
    if (lt_settings.quiet || !*what)
        return;
    char line[320];
    int length = snprintf(line, sizeof line, "locktop: %s\n", what);
    sys_call3(SYS_write, 2, (long)line, length);
}

/* Yama keeps this permission for a process, also over exec, but a child does not inherit it.
 * Without Yama the call fails with EINVAL, and is not needed. */
static void allow_tracers(void)
{
    if (lt_settings.any_tracer)
        sys_call6(SYS_prctl, PR_SET_PTRACER, (long)PR_SET_PTRACER_ANY, 0, 0, 0, 0);
}

static bool publish(void)
{
    static const uint8_t magic[8] = "locktop";
    lt_shm->clock = lt_clock.kind;
    lt_shm->clock_hz = lt_clock.hz;
    lt_shm->wait_shift = lt_clock.wait_shift;
    lt_shm->created_real_ns = lt_clock_gettime_ns(CLOCK_REALTIME);
    lt_shm->clock0_ns = lt_clock_gettime_ns(CLOCK_MONOTONIC);
    lt_shm->clock0_ticks = lt_now();
    lt_shm->state = LT_RUNNING;
    __atomic_thread_fence(
        __ATOMIC_RELEASE); /* the magic last: a reader that sees it sees the rest */
    memcpy(lt_shm->magic, magic, sizeof magic);
    return control_share(lt_settings.level, lt_settings.calls);
}

static bool watch_begin(void)
{
    char reason[160];
    if (!shm_create(lt_settings.directory, reason, sizeof reason)) {
        shm_leave_reason(reason);
        say(reason);
        return false;
    }
    lock_names_init();
    custom_locks_init();
    conditions_init();
    misuses_init();
    profiles_init();
    lock_order_init();
    stack_capture_init();
    calls_init();
    if (threads_init(read_tid) == 0 && lock_table_init() == 0 && stack_table_init() == 0 &&
        publish())
        return true;
    shm_remove();
    struct shm_map map = shm_detach();
    shm_unmap(&map);
    shm_leave_reason("no room for the first tables");
    say("no room for the first tables");
    return false;
}

static void inherit_held(void)
{
    struct lt_thread *t = watched();
    for (uint32_t i = 0; t && i < inherited_count; i++) {
        const struct inherited *from = &inherited[i];
        struct lt_held *held = held_push(t, from->key, counters_of(t, from->key, 0)->lock,
                                         (const void *)(uintptr_t)from->site, 0,
                                         (uint16_t)(from->flags & LT_HELD_SHARED));
        if (held)
            held->depth = from->depth;
    }
    inherited_count = 0;
}

void process_start_child(void)
{
    uint32_t parent = lt_shm ? lt_shm->pid : 0;
    control_own(LT_LEVEL_DORMANT);
    semaphores_inherit();
    shm_detach();
    threads_reset();
    if (!watch_begin())
        return;
    lt_shm->forked_from = parent;
    inherit_held();
    calls_inherit();
}

void process_before_fork(void)
{
    struct lt_thread *t = watched();
    calls_before_fork();
    inherited_count = 0;
    for (uint32_t offset = 0; t && offset < t->held_top && inherited_count < INHERITED_MAX;) {
        const struct lt_held *held = held_at(t, offset);
        offset += (uint32_t)sizeof *held;
        inherited[inherited_count++] =
            (struct inherited){held->key, held->site, held->depth, held->flags};
    }
}

void process_after_fork(void)
{
    calls_after_fork();
}

/* The forking thread alone goes on in the child, so no other thread can be in the library. Makes
 * nothing yet: most children call exec at once. The parent's file stays mapped. A hook further up,
 * which a signal handler interrupted and then forked, may still point into it. */
void process_after_fork_in_child(void)
{
    profiles_after_fork_in_child();
    /* At once, not with the first hook: what the program itself says of its tracers comes later,
     * and counts. */
    if (forks_watched && !shm_is_sealed())
        allow_tracers();
    if (!lt_shm)
        return;
    if (shm_is_sealed()) {
        /* nor does the library watch threads that the child makes: shm_is_of_parent() */
        thread_unwatch();
        return;
    }
    /* The thread forked in the middle of the library's work. */
    if (lt_own.busy || !forks_watched) {
        control_own(LT_LEVEL_DORMANT);
        return;
    }
    thread_leave();
    control_own(MODE_CHILD);
}

void process_start(char *const *environ, uint32_t (*read_tid_of_caller)(void))
{
    char wrong[200];
    settings_read(environ, wrong, sizeof wrong);
    say(wrong);
    /* Now: programs that change their title write over their environment. */
    const char *program = (const char *)getauxval(AT_EXECFN);
    program = program ? program : "";
    forks_watched = child_filter_forks(lt_settings.children, program);
    if (!child_filter_program(lt_settings.children, program, lt_settings.directory)) {
        shm_leave_reason("LOCKTOP_CHILDREN leaves out this child of a watched process");
        return;
    }
    allow_tracers();
    read_tid = read_tid_of_caller;
    lt_clock_init();
    call_filter_init();
    pthread_atfork(process_before_fork, process_after_fork, process_after_fork_in_child);
    if (watch_begin())
        stale_files_remove(lt_settings.directory, lt_shm->pid_namespace);
}

/* Removes the name; the mapping stays. Other threads may still run, and a reader that has the file
 * open sees the end. A vfork child shares this memory but is not this process. A process that has
 * confined itself leaves its file to the next start, which removes stale files. */
__attribute__((destructor)) void process_end(void)
{
    if (!lt_shm || shm_is_sealed() || sys_getpid() != lt_shm->pid)
        return;
    __atomic_store_n(&lt_shm->state, LT_EXITED, __ATOMIC_RELEASE);
    shm_remove();
}
