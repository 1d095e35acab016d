/* The profiles of this process. */
#include "profiling/profiles.h"

#include <locktop.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/tls.h"
#include "profiling/code_modules.h"
#include "profiling/profile.h"
#include "profiling/profile_lock.h"
#include "profiling/profile_memory.h"
#include "profiling/samplers.h"
#include "profiling/sources.h"
#include "profiling/thread_list.h"
#include "profiling/thread_starts.h"
#include "shm/segment.h"

static struct profile profiles[LT_PROFILES];
static int last_number;
static bool are_used; /* the program has made a profile, now or before */
static bool forked;   /* after a fork handler, until the child has its own file */
uint32_t profiles_count;
uint32_t profiles_of_all_threads;

/* Whether this is a child that no fork handler has seen. The lock, timers and rings here are
 * those of its parent. */
static bool is_unforked_child(void)
{
    return shm_is_of_parent() && !forked;
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

/* A range of code, with the module that has it. */
struct code_range {
    struct lt_profile_region region;
    uintptr_t base;
};

static int check_region(const void *start, size_t size, struct code_range *range)
{
    uintptr_t from = (uintptr_t)start;
    if (size == LOCKTOP_WHOLE_FUNCTION && !code_function_at(from, &from, &size))
        return LOCKTOP_NOT_A_FUNCTION;
    if (!size)
        return LOCKTOP_EMPTY_REGION;
    if (size > UINTPTR_MAX - from)
        return LOCKTOP_BAD_REGION;
    struct code_module module;
    *range = (struct code_range){.region = {.start = from, .size = size}};
    if (code_module_of(from, from + size, &module)) {
        range->base = module.base;
        range->region.offset = module.offset;
        code_module_path(&module, (char *)range->region.module);
        return LOCKTOP_OK;
    }
    return code_is_executable(from, from + size) ? LOCKTOP_OK : LOCKTOP_NOT_CODE;
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
static int region_append(struct profile *profile, const struct code_range *range)
{
    const struct lt_profile_region *region = &range->region;
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
    profile->base[last] = range->base;
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
                  const struct code_range *range)
{
    const struct profile_source *source = profile_source(request->source);
    memset(profile, 0, sizeof *profile);
    profile->state = LT_PROFILE_STOPPED;
    profile->source = request->source;
    profile->all_threads = request->scope == LOCKTOP_ALL_THREADS;
    profile->interval = request->interval ? request->interval : source->default_interval;
    profile->bucket_shift = (unsigned)__builtin_ctzll(request->bucket_size);
    strncpy(profile->name, request->name ? request->name : "", sizeof profile->name - 1);
    int code = region_append(profile, range);
    if (code == LOCKTOP_OK) {
        last_number = last_number == INT32_MAX ? 1 : last_number + 1;
        profile->number = code = last_number;
        profiles_count++;
    }
    return code;
}

int profiles_create(const struct profile_request *request)
{
    struct code_range range;
    uint64_t blocked;
    int code = memory_status();
    if (code == LOCKTOP_OK)
        code = check_region(request->start, request->size, &range);
    if (code == LOCKTOP_OK)
        code = check_request(request);
    if (code != LOCKTOP_OK)
        return code;
    are_used = true;
    if (!profile_lock_take(&blocked))
        return LOCKTOP_BUSY;
    code = LOCKTOP_TOO_MANY_PROFILES;
    for (uint32_t i = 0; i < LT_PROFILES && code == LOCKTOP_TOO_MANY_PROFILES; i++)
        if (!profiles[i].number)
            code = create(&profiles[i], request, &range);
    profile_lock_give(&blocked);
    return code;
}

int profiles_add(int number, const void *start, size_t size)
{
    struct code_range range;
    uint64_t blocked;
    int code = memory_status();
    if (code == LOCKTOP_OK)
        code = check_region(start, size, &range);
    if (code != LOCKTOP_OK)
        return code;
    if (!profile_lock_take(&blocked))
        return LOCKTOP_BUSY;
    struct profile *profile = find(number);
    if (!profile)
        code = LOCKTOP_NO_PROFILE;
    else if (profile_is_running(profile))
        code = LOCKTOP_RUNNING;
    else
        code = region_append(profile, &range);
    profile_lock_give(&blocked);
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
    if (!sampler_exists(profile, tid) && sampler_add(profile, tid, blocked) != LOCKTOP_OK &&
        !sampler_thread_is_gone(tid))
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
    if (!profile_lock_take(&blocked))
        return LOCKTOP_BUSY;
    stop_if_taken_over();
    struct profile *profile = find(number);
    code = profile ? start(profile, blocked) : LOCKTOP_NO_PROFILE;
    profile_lock_give(&blocked);
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
    if (is_unforked_child())
        return LOCKTOP_NOT_WATCHED;
    if (!profile_lock_take(&blocked))
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
    profile_lock_give(&blocked);
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
    if (is_unforked_child())
        return LOCKTOP_NOT_WATCHED;
    if (!profile_lock_take(&blocked))
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
    profile_lock_give(&blocked);
    return code;
}

int profiles_destroy(int number)
{
    uint64_t blocked;
    if (is_unforked_child())
        return LOCKTOP_NOT_WATCHED;
    if (!profile_lock_take(&blocked))
        return LOCKTOP_BUSY;
    struct profile *profile = find(number);
    if (profile) {
        stop(profile, LT_PROFILE_STOPPED);
        profile_unshare(profile);
        profile->number = 0;
        profiles_count--;
    }
    profile_lock_give(&blocked);
    return profile ? LOCKTOP_OK : LOCKTOP_NO_PROFILE;
}

/* ---- threads ---- */

/* The thread gets a new sampler, even if it seems to have one. A dead thread with the same tid may
 * have left that one. */
void profiles_thread_begins(void)
{
    uint64_t blocked;
    if (shm_is_sealed() || is_unforked_child() || !profile_lock_take(&blocked))
        return;
    uint32_t tid = sys_gettid();
    stop_if_taken_over();
    samplers_end_thread(tid);
    for (uint32_t i = 0; i < LT_PROFILES; i++)
        if (profiles[i].number && profiles[i].all_threads && profile_is_running(&profiles[i]))
            sample_thread(&profiles[i], tid, blocked);
    profile_lock_give(&blocked);
}

void profiles_thread_ends(void)
{
    uint64_t blocked;
    if (!samplers_in_use || shm_is_sealed() || is_unforked_child() || !profile_lock_take(&blocked))
        return;
    samplers_end_thread(sys_gettid());
    profile_lock_give(&blocked);
}

/* ---- dlclose and fork ---- */

/* Whether the code of all regions is still loaded. */
static bool has_code(const struct profile *profile)
{
    for (uint32_t i = 0; i < profile->region_count; i++) {
        const struct lt_profile_region *region = &profile->region[i];
        struct code_module module;
        if (profile->base[i] &&
            (!code_module_of(region->start, region->start + region->size, &module) ||
             module.base != profile->base[i] || module.offset != region->offset))
            return false;
    }
    return true;
}

/* The loader's lock is never taken inside the lock of the profiles. */
void profiles_check_code(void)
{
    for (uint32_t i = 0; i < LT_PROFILES && !is_unforked_child(); i++) {
        uint64_t blocked;
        if (!profile_lock_take(&blocked))
            return;
        struct profile copy = profiles[i];
        profile_lock_give(&blocked);
        if (!copy.number || has_code(&copy) || !profile_lock_take(&blocked))
            continue;
        if (profiles[i].number == copy.number)
            stop(&profiles[i], LT_PROFILE_UNLOADED);
        profile_lock_give(&blocked);
    }
}

void profiles_after_fork_in_child(void)
{
    if (!are_used)
        return; /* a write would copy a page in each child */
    forked = true;
    profile_lock_reset();
    profiles_of_all_threads = 0;
    thread_starts_forget();
    samplers_forget();
    profile_memory_forget();
    for (uint32_t i = 0; i < LT_PROFILES; i++) {
        struct profile *profile = &profiles[i];
        if (!profile->number)
            continue;
        if (profile_is_running(profile))
            profile->state = LT_PROFILE_STOPPED;
        profile->ran_ns = 0;
        profile->shared = NULL;
        profile->counts = NULL;
    }
}

void profiles_init(void)
{
    forked = false;
    profile_memory_init();
}
