/* The profiles of this process, and the lock around them. */
#include "profiling/profiles.h"

#include <locktop.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/tls.h"
#include "profiling/code_modules.h"
#include "profiling/profile.h"
#include "profiling/profile_memory.h"
#include "profiling/samplers.h"
#include "profiling/sources.h"
#include "profiling/thread_list.h"
#include "shm/segment.h"

enum { STARTS_MAX = 256 };

static struct profile profiles[LT_PROFILES];
static int last_number;
uint32_t profiles_count;
uint32_t profiles_of_all_threads;
static struct profiled_start starts[STARTS_MAX];

/* ---- the lock ---- */

/* While a thread has the lock, no signal handler runs in the thread. So a handler may use profiles,
 * and the program cannot delay a thread that has the lock. A program that confined itself may be
 * killed by a system call, so then the lock makes none. */
static uint64_t owner; /* pthread_self(), 0: free */

static void mask_restore(const uint64_t *blocked)
{
    if (*blocked != UINT64_MAX) /* the kernel never returns this mask: SIGKILL is not in it */
        sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)blocked, 0, sizeof *blocked, 0, 0);
}

static bool lock_take(uint64_t *blocked)
{
    uint64_t all = UINT64_MAX, self = (uint64_t)pthread_self(), expected = 0;
    bool is_sealed = shm_is_sealed();
    *blocked = all;
    if (!is_sealed)
        sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)blocked, sizeof all, 0, 0);
    while (!__atomic_compare_exchange_n(&owner, &expected, self, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        if (expected == self) { /* in a handler of a signal that interrupted this thread in here */
            mask_restore(blocked);
            return false;
        }
        expected = 0;
        if (is_sealed)
            cpu_relax();
        else
            sys_call3(SYS_sched_yield, 0, 0, 0);
    }
    return true;
}

static void lock_give(const uint64_t *blocked)
{
    __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
    mask_restore(blocked);
}

/* Whether this process may make profiles: it has a file of its own. */
static int memory_status(void)
{
    if (shm_is_sealed())
        return LOCKTOP_CONFINED;
    watched(); /* a forked child makes its file */
    return lt_shm && lt_shm->pid == sys_getpid() && !shm_is_of_parent() ? LOCKTOP_OK
                                                                        : LOCKTOP_NOT_WATCHED;
}

static struct profile *find(int number)
{
    for (uint32_t i = 0; number > 0 && i < LT_PROFILES; i++)
        if (profiles[i].number == number)
            return &profiles[i];
    return NULL;
}

/* ---- create ---- */

static int check_region(const void *start, size_t *size, struct lt_profile_region *region)
{
    uintptr_t from = (uintptr_t)start;
    if (*size == LOCKTOP_WHOLE_FUNCTION && !code_function_at(from, &from, size))
        return LOCKTOP_NOT_A_FUNCTION;
    if (!*size)
        return LOCKTOP_EMPTY_REGION;
    if (*size > UINTPTR_MAX - from)
        return LOCKTOP_BAD_REGION;
    struct code_module module;
    *region = (struct lt_profile_region){.start = from, .size = *size};
    if (code_module_of(from, from + *size, &module)) {
        region->offset = module.offset;
        memcpy(region->module, module.path, strlen(module.path));
        return LOCKTOP_OK;
    }
    return code_is_executable(from, from + *size) ? LOCKTOP_OK : LOCKTOP_NOT_CODE;
}

static int check_request(const struct profile_request *request)
{
    const struct profile_source *source = profile_source(request->source);
    if (request->bucket_size < 4 || request->bucket_size > 1u << 30 ||
        request->bucket_size & (request->bucket_size - 1))
        return LOCKTOP_BAD_BUCKET_SIZE;
    if (!source)
        return LOCKTOP_BAD_SOURCE;
    if (request->interval && (request->interval < profile_source_min(request->source) ||
                              request->interval > source->max_interval))
        return LOCKTOP_BAD_INTERVAL;
    if (request->scope != LOCKTOP_THIS_THREAD && request->scope != LOCKTOP_ALL_THREADS)
        return LOCKTOP_BAD_SCOPE;
    return profile_source_status(request->source);
}

/* Adds a region behind those that the profile has. */
static int region_append(struct profile *profile, const struct lt_profile_region *region)
{
    uint32_t last = profile->region_count;
    for (uint32_t i = 0; i < last; i++)
        if (region->start < profile->region[i].start + profile->region[i].size &&
            profile->region[i].start < region->start + region->size)
            return LOCKTOP_OVERLAP;
    if (last == LT_PROFILE_REGIONS)
        return LOCKTOP_TOO_MANY_REGIONS;
    uint64_t buckets = ((region->size - 1) >> profile->bucket_shift) + 1;
    if (buckets > LT_PROFILE_BUCKETS - profile->bucket_count)
        return LOCKTOP_TOO_MANY_BUCKETS;
    profile->region[last] = *region;
    profile->first_bucket[last] = profile->bucket_count;
    profile->bucket_count += buckets;
    profile->region_count++;
    if (profile_share(profile))
        return LOCKTOP_OK;
    profile->bucket_count -= buckets;
    profile->region_count--;
    return LOCKTOP_NO_ROOM;
}

static int create(struct profile *profile, const struct profile_request *request,
                  const struct lt_profile_region *region)
{
    const struct profile_source *source = profile_source(request->source);
    memset(profile, 0, sizeof *profile);
    profile->state = LT_PROFILE_STOPPED;
    profile->source = request->source;
    profile->all_threads = request->scope == LOCKTOP_ALL_THREADS;
    profile->interval = request->interval ? request->interval : source->default_interval;
    profile->bucket_shift = (unsigned)__builtin_ctzll(request->bucket_size);
    strncpy(profile->name, request->name ? request->name : "", sizeof profile->name - 1);
    int code = region_append(profile, region);
    if (code == LOCKTOP_OK) {
        last_number = last_number == INT32_MAX ? 1 : last_number + 1;
        profile->number = code = last_number;
        profiles_count++;
    }
    return code;
}

int profiles_create(const struct profile_request *request)
{
    struct lt_profile_region region;
    size_t size = request->size;
    uint64_t blocked;
    int code = memory_status();
    if (code == LOCKTOP_OK)
        code = check_region(request->start, &size, &region);
    if (code == LOCKTOP_OK)
        code = check_request(request);
    if (code != LOCKTOP_OK)
        return code;
    if (!lock_take(&blocked))
        return LOCKTOP_BUSY;
    code = LOCKTOP_TOO_MANY_PROFILES;
    for (uint32_t i = 0; i < LT_PROFILES && code == LOCKTOP_TOO_MANY_PROFILES; i++)
        if (!profiles[i].number)
            code = create(&profiles[i], request, &region);
    lock_give(&blocked);
    return code;
}

int profiles_add(int number, const void *start, size_t size)
{
    struct lt_profile_region region;
    uint64_t blocked;
    int code = memory_status();
    if (code == LOCKTOP_OK)
        code = check_region(start, &size, &region);
    if (code != LOCKTOP_OK)
        return code;
    if (!lock_take(&blocked))
        return LOCKTOP_BUSY;
    struct profile *profile = find(number);
    if (!profile)
        code = LOCKTOP_NO_PROFILE;
    else if (profile_is_running(profile))
        code = LOCKTOP_RUNNING;
    else
        code = region_append(profile, &region);
    lock_give(&blocked);
    return code;
}

/* ---- start and stop ---- */

static void stop(struct profile *profile, uint32_t state)
{
    if (profile_is_running(profile)) {
        struct lt_profile *shared = profile->shared;
        profiles_of_all_threads -= profile->all_threads;
        profile->ran_ns += lt_clock_gettime_ns(CLOCK_MONOTONIC) - profile->started_ns;
        shared->ran_ticks += lt_now() - shared->started;
        shared->started = 0;
        profile_publish_state(profile, state);
        samplers_end_profile(profile);
    } else if (state != LT_PROFILE_STOPPED) {
        profile_publish_state(profile, state);
    }
}

/* The program installed a handler of its own for the signal. */
static void stop_if_taken_over(void)
{
    if (shm_is_sealed() || samplers_have_signal())
        return;
    for (uint32_t i = 0; i < LT_PROFILES; i++)
        if (profiles[i].number && profile_is_running(&profiles[i]))
            stop(&profiles[i], LT_PROFILE_TAKEN_OVER);
}

/* Makes the sampler of one thread of a profile of all threads. */
static void sample_thread(struct profile *profile, uint32_t tid, uint64_t blocked)
{
    if (!sampler_exists(profile, tid) && sampler_add(profile, tid, blocked) != LOCKTOP_OK)
        __atomic_fetch_add(&profile->shared->left_out, 1, __ATOMIC_RELAXED);
}

static int sample_all(struct profile *profile, uint32_t own)
{
    struct thread_list list;
    uint32_t tid;
    profiles_of_all_threads++;
    thread_list_open(&list);
    while ((tid = thread_list_next(&list)))
        if (tid != own)
            sample_thread(profile, tid, samplers_blocked_by(tid));
    thread_list_close(&list);
    return LOCKTOP_OK;
}

static int start(struct profile *profile, uint64_t blocked)
{
    uint32_t tid = sys_gettid();
    if (profile_is_running(profile))
        return LOCKTOP_RUNNING;
    if (profile->state == LT_PROFILE_UNLOADED)
        return LOCKTOP_UNLOADED;
    if (!profile_share(profile))
        return LOCKTOP_NO_ROOM;
    int code = samplers_take_signal(blocked);
    if (code != LOCKTOP_OK)
        return code;
    samplers_end_dead();
    profile->shared->left_out = 0;
    profile->started_ns = lt_clock_gettime_ns(CLOCK_MONOTONIC);
    profile->shared->started = lt_now();
    profile_publish_state(profile, LT_PROFILE_RUNNING);
    code = sampler_add(profile, tid, blocked);
    if (code == LOCKTOP_OK && profile->all_threads)
        return sample_all(profile, tid);
    if (code != LOCKTOP_OK) {
        profiles_of_all_threads += profile->all_threads; /* stop() takes it back */
        stop(profile, LT_PROFILE_STOPPED);
    }
    return code;
}

int profiles_start(int number)
{
    uint64_t blocked;
    int code = memory_status();
    if (code != LOCKTOP_OK)
        return code;
    if (!lock_take(&blocked))
        return LOCKTOP_BUSY;
    stop_if_taken_over();
    struct profile *profile = find(number);
    code = profile ? start(profile, blocked) : LOCKTOP_NO_PROFILE;
    lock_give(&blocked);
    return code;
}

/* The code that says why a profile stopped by itself. */
static int code_of(const struct profile *profile)
{
    return profile->state == LT_PROFILE_UNLOADED     ? LOCKTOP_UNLOADED
           : profile->state == LT_PROFILE_TAKEN_OVER ? LOCKTOP_TAKEN_OVER
                                                     : LOCKTOP_OK;
}

int profiles_stop(int number)
{
    uint64_t blocked;
    if (!lock_take(&blocked))
        return LOCKTOP_BUSY;
    stop_if_taken_over();
    struct profile *profile = find(number);
    int code = LOCKTOP_NO_PROFILE;
    if (profile && profile_is_running(profile)) {
        stop(profile, LT_PROFILE_STOPPED);
        code = LOCKTOP_OK;
    } else if (profile) {
        code = code_of(profile) ? code_of(profile) : LOCKTOP_NOT_RUNNING;
    }
    lock_give(&blocked);
    return code;
}

/* ---- read and destroy ---- */

static void read_totals(const struct profile *profile, struct locktop_profile_totals *totals)
{
    const struct lt_profile *shared = profile->shared;
    *totals = (struct locktop_profile_totals){
        .buckets = profile->bucket_count, .interval = profile->interval, .ran_ns = profile->ran_ns};
    if (profile_is_running(profile))
        totals->ran_ns += lt_clock_gettime_ns(CLOCK_MONOTONIC) - profile->started_ns;
    if (!shared)
        return;
    totals->samples = __atomic_load_n(&shared->samples, __ATOMIC_RELAXED);
    totals->elsewhere = __atomic_load_n(&shared->elsewhere, __ATOMIC_RELAXED);
    totals->lost = __atomic_load_n(&shared->lost, __ATOMIC_RELAXED);
    totals->threads = __atomic_load_n(&shared->threads, __ATOMIC_RELAXED);
    totals->left_out = __atomic_load_n(&shared->left_out, __ATOMIC_RELAXED);
}

int profiles_read(int number, uint64_t *counts, size_t count, struct locktop_profile_totals *totals)
{
    uint64_t blocked;
    if (!lock_take(&blocked))
        return LOCKTOP_BUSY;
    stop_if_taken_over();
    struct profile *profile = find(number);
    int code = LOCKTOP_NO_PROFILE;
    if (profile && counts && count < profile->bucket_count) {
        code = LOCKTOP_BAD_COUNTS;
    } else if (profile) {
        if (!shm_is_sealed())
            samplers_end_dead();
        samplers_drain(profile);
        if (totals)
            read_totals(profile, totals);
        for (uint64_t i = 0; counts && i < profile->bucket_count; i++)
            counts[i] =
                profile->shared ? __atomic_load_n(&profile->counts[i], __ATOMIC_RELAXED) : 0;
        code = code_of(profile);
    }
    lock_give(&blocked);
    return code;
}

int profiles_destroy(int number)
{
    uint64_t blocked;
    if (!lock_take(&blocked))
        return LOCKTOP_BUSY;
    struct profile *profile = find(number);
    if (profile) {
        stop(profile, LT_PROFILE_STOPPED);
        profile_unshare(profile);
        profile->number = 0;
        profiles_count--;
    }
    lock_give(&blocked);
    return profile ? LOCKTOP_OK : LOCKTOP_NO_PROFILE;
}

/* ---- threads ---- */

/* A dead thread with the same tid may have left a sampler, or the start of a profile has just made
 * one. In both cases the thread gets a new one. */
void profiles_thread_begins(void)
{
    uint64_t blocked;
    if (shm_is_sealed() || !lock_take(&blocked))
        return;
    uint32_t tid = sys_gettid();
    stop_if_taken_over();
    samplers_end_thread(tid);
    for (uint32_t i = 0; i < LT_PROFILES; i++)
        if (profiles[i].number && profiles[i].all_threads && profile_is_running(&profiles[i]))
            sample_thread(&profiles[i], tid, blocked);
    lock_give(&blocked);
}

void profiles_thread_ends(void)
{
    uint64_t blocked;
    if (!samplers_in_use || shm_is_sealed() || !lock_take(&blocked))
        return;
    samplers_end_thread(sys_gettid());
    lock_give(&blocked);
}

struct profiled_start *profiles_keep_start(void *(*start_routine)(void *), void *argument)
{
    for (uint32_t i = 0; i < STARTS_MAX; i++) {
        uint32_t expected = 0;
        if (!__atomic_compare_exchange_n(&starts[i].is_used, &expected, 1, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        starts[i].start = start_routine;
        starts[i].argument = argument;
        return &starts[i];
    }
    return NULL;
}

struct profiled_start profiles_take_start(struct profiled_start *kept)
{
    struct profiled_start copy = *kept;
    __atomic_store_n(&kept->is_used, 0, __ATOMIC_RELEASE);
    return copy;
}

/* ---- dlclose and fork ---- */

/* Whether the code of all regions is still loaded. Code that the program made at run time has no
 * module. */
static bool has_code(const struct profile *profile)
{
    for (uint32_t i = 0; i < profile->region_count; i++) {
        const struct lt_profile_region *region = &profile->region[i];
        struct code_module module;
        if (region->module[0] &&
            (!code_module_of(region->start, region->start + region->size, &module) ||
             module.offset != region->offset ||
             strcmp(module.path, (const char *)region->module) != 0))
            return false;
    }
    return true;
}

/* The loader's lock is never taken inside the lock of the profiles. */
void profiles_check_code(void)
{
    for (uint32_t i = 0; i < LT_PROFILES; i++) {
        uint64_t blocked;
        if (!lock_take(&blocked))
            return;
        struct profile copy = profiles[i];
        lock_give(&blocked);
        if (!copy.number || has_code(&copy) || !lock_take(&blocked))
            continue;
        if (profiles[i].number == copy.number)
            stop(&profiles[i], LT_PROFILE_UNLOADED);
        lock_give(&blocked);
    }
}

void profiles_after_fork_in_child(void)
{
    owner = 0;
    profiles_of_all_threads = 0;
    memset(starts, 0, sizeof starts);
    if (!profiles_count)
        return;
    samplers_forget();
    profile_memory_forget();
    for (uint32_t i = 0; i < LT_PROFILES; i++) {
        struct profile *profile = &profiles[i];
        if (profile_is_running(profile))
            profile->state = LT_PROFILE_STOPPED;
        profile->ran_ns = 0;
        profile->shared = NULL;
        profile->counts = NULL;
    }
}

void profiles_init(void)
{
    profile_memory_init();
}
