/* The functions of locktop.h for profiles. */
#include <errno.h>
#include <locktop.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "profiling/code_modules.h"
#include "profiling/profiles.h"
#include "profiling/sources.h"

/* The names in the library. The header declares inline functions that call them. */
#undef locktop_profile_create
#undef locktop_profile_add
#undef locktop_profile_start
#undef locktop_profile_stop
#undef locktop_profile_read
#undef locktop_profile_destroy
#undef locktop_profile_find
#undef locktop_profile_source_info
#undef locktop_profile_error
EXPORT int locktop_profile_create(const void *start, size_t size, size_t bucket_size, int source,
                                  uint64_t interval, int scope, const char *name);
EXPORT int locktop_profile_add(int profile, const void *start, size_t size);
EXPORT int locktop_profile_start(int profile);
EXPORT int locktop_profile_stop(int profile);
EXPORT int locktop_profile_read(int profile, uint64_t *counts, size_t count,
                                struct locktop_profile_totals *totals);
EXPORT int locktop_profile_destroy(int profile);
EXPORT int locktop_profile_find(const char *symbol, const void **start, size_t *size);
EXPORT int locktop_profile_source_info(int source, struct locktop_profile_source_info *info);
EXPORT const char *locktop_profile_error(int code);

int locktop_profile_create(const void *start, size_t size, size_t bucket_size, int source,
                           uint64_t interval, int scope, const char *name)
{
    int before = errno;
    int code = profiles_create(&(struct profile_request){.start = start,
                                                         .size = size,
                                                         .bucket_size = bucket_size,
                                                         .source = source,
                                                         .interval = interval,
                                                         .scope = scope,
                                                         .name = name});
    errno = before;
    return code;
}

int locktop_profile_add(int profile, const void *start, size_t size)
{
    int before = errno;
    int code = profiles_add(profile, start, size);
    errno = before;
    return code;
}

int locktop_profile_start(int profile)
{
    int before = errno;
    int code = profiles_start(profile);
    errno = before;
    return code;
}

int locktop_profile_stop(int profile)
{
    int before = errno;
    int code = profiles_stop(profile);
    errno = before;
    return code;
}

int locktop_profile_read(int profile, uint64_t *counts, size_t count,
                         struct locktop_profile_totals *totals)
{
    int before = errno;
    int code = profiles_read(profile, counts, count, totals);
    errno = before;
    return code;
}

int locktop_profile_destroy(int profile)
{
    int before = errno;
    int code = profiles_destroy(profile);
    errno = before;
    return code;
}

int locktop_profile_find(const char *symbol, const void **start, size_t *size)
{
    uintptr_t from;
    if (!symbol || !start || !size)
        return LOCKTOP_BAD_POINTER;
    int before = errno;
    bool is_found = code_function_named(symbol, &from, size);
    errno = before;
    if (!is_found)
        return LOCKTOP_NOT_A_FUNCTION;
    *start = (const void *)from;
    return LOCKTOP_OK;
}

int locktop_profile_source_info(int source, struct locktop_profile_source_info *info)
{
    const struct profile_source *entry = profile_source(source);
    if (!entry)
        return LOCKTOP_BAD_SOURCE;
    if (!info)
        return LOCKTOP_BAD_POINTER;
    *info = (struct locktop_profile_source_info){entry->name,
                                                 entry->unit,
                                                 entry->default_interval,
                                                 profile_source_min(source),
                                                 entry->max_interval,
                                                 profile_source_status(source)};
    return LOCKTOP_OK;
}

static const char *const texts[] = {
    [-LOCKTOP_OK] = "no error",
    [-LOCKTOP_NOT_LOADED] =
        "liblocktop.so is not loaded: preload it (locktop run) or link -llocktop",
    [-LOCKTOP_EMPTY_REGION] = "size: the region is empty",
    [-LOCKTOP_BAD_REGION] = "size: the region goes beyond the end of the address space",
    [-LOCKTOP_NOT_CODE] = "start: the region is not code: it is not mapped executable",
    [-LOCKTOP_NOT_A_FUNCTION] = "start, symbol: no symbol table has this function",
    [-LOCKTOP_OVERLAP] = "start: the region overlaps another region of this profile",
    [-LOCKTOP_TOO_MANY_REGIONS] = "profile: has 8 regions already",
    [-LOCKTOP_BAD_BUCKET_SIZE] = "bucket_size: use a power of two from 4 to 1073741824 bytes",
    [-LOCKTOP_TOO_MANY_BUCKETS] = "bucket_size: too small, the profile has over 4194304 buckets",
    [-LOCKTOP_BAD_SOURCE] = "source: there is no such source",
    [-LOCKTOP_BAD_INTERVAL] = "interval: outside what locktop_profile_source_info() says",
    [-LOCKTOP_BAD_SCOPE] = "scope: use LOCKTOP_THIS_THREAD or LOCKTOP_ALL_THREADS",
    [-LOCKTOP_NOT_ON_THIS_MACHINE] = "source: not on this machine",
    [-LOCKTOP_NOT_PERMITTED] =
        "source: the kernel does not permit it (see kernel.perf_event_paranoid)",
    [-LOCKTOP_NO_SIGNAL] = "scope: no real-time signal is free, or this thread blocks the signal",
    [-LOCKTOP_NO_ROOM] = "size: no room for the counts (see LOCKTOP_MEMORY and /dev/shm)",
    [-LOCKTOP_TOO_MANY_PROFILES] = "profile: there are 256 already, destroy one",
    [-LOCKTOP_NO_PROFILE] = "profile: there is no profile of this number",
    [-LOCKTOP_RUNNING] = "profile: it is running",
    [-LOCKTOP_NOT_RUNNING] = "profile: it is not running",
    [-LOCKTOP_UNLOADED] = "start: dlclose() has unloaded code of the region",
    [-LOCKTOP_TAKEN_OVER] = "profile: the program took over the signal that it used",
    [-LOCKTOP_LIMIT] = "scope: the kernel gives no further timer or event (ulimit -i, -l, -n)",
    [-LOCKTOP_CONFINED] = "profile: the program has confined itself (seccomp)",
    [-LOCKTOP_BUSY] = "profile: this thread is inside a function of profiles",
    [-LOCKTOP_BAD_COUNTS] = "count: the profile has more buckets",
    [-LOCKTOP_NOT_WATCHED] =
        "the library has no shared memory here (see LOCKTOP_CHILDREN, LOCKTOP_DIR)",
    [-LOCKTOP_BAD_POINTER] = "info, symbol, start, size: must not be NULL",
};

const char *locktop_profile_error(int code)
{
    if (code > 0)
        return texts[0];
    return code > -(int)(sizeof texts / sizeof *texts) ? texts[-code] : "unknown code";
}
