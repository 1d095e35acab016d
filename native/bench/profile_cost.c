/* Times the same work without and with a profile, in turns: see profile_cost.h. */
#include "profile_cost.h"

#include "measure.h"

#include <locktop.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLICE_NS = 40000000, BUCKET = 16 };

static volatile uint64_t result;

__attribute__((noinline)) static void do_work(uint64_t steps)
{
    uint64_t value = result;
    for (uint64_t i = 0; i < steps; i += 1000)
        value = work(value, 1000);
    result = value;
}

static uint64_t time_of(uint64_t steps)
{
    uint64_t begin = moment().ns;
    do_work(steps);
    return moment().ns - begin;
}

static int failed(int code)
{
    fprintf(stderr, "locktop-bench: %s\n", locktop_profile_error(code));
    return 2;
}

int list_clocks(void)
{
    struct locktop_profile_source_info info;
    for (int source = LOCKTOP_TIMER; source <= LOCKTOP_TASK_CLOCK; source++) {
        int code = locktop_profile_source_info(source, &info);
        if (code != LOCKTOP_OK)
            return failed(code);
        printf("%c{\"name\": \"%s\", \"number\": %d, \"min_ns\": %llu, \"max_ns\": %llu, "
               "\"status\": %d}",
               source == LOCKTOP_TIMER ? '[' : ',', info.name, source,
               (unsigned long long)info.min_interval, (unsigned long long)info.max_interval,
               (int)info.status);
    }
    puts("]");
    return 0;
}

/* Returns the time of the work under the profile, 0 if it cannot be started. */
static uint64_t profiled_time(int profile, uint64_t steps)
{
    if (locktop_profile_start(profile) != LOCKTOP_OK)
        return 0;
    uint64_t time = time_of(steps);
    locktop_profile_stop(profile);
    return time;
}

int profile_cost(int source, uint64_t interval, unsigned pairs)
{
    int profile = locktop_profile_create_function(do_work, BUCKET, source, interval,
                                                  LOCKTOP_THIS_THREAD, "bench");
    if (profile < 0)
        return failed(profile);
    /* A start begins a new interval. */
    uint64_t slice = interval * 5 / 2 > SLICE_NS ? interval * 5 / 2 : SLICE_NS;
    uint64_t steps = (uint64_t)((double)slice / work_step_ns());
    printf("{\"pairs\": [");
    for (unsigned i = 0; i < pairs; i++) {
        /* The order changes, so that a machine that slows down makes no difference. */
        uint64_t with = i % 2 ? profiled_time(profile, steps) : 0;
        uint64_t without = time_of(steps);
        if (!(i % 2))
            with = profiled_time(profile, steps);
        printf("%s[%llu, %llu]", i ? ", " : "", (unsigned long long)without,
               (unsigned long long)with);
    }
    struct locktop_profile_totals totals;
    int code = locktop_profile_read(profile, NULL, 0, &totals);
    if (code != LOCKTOP_OK)
        return failed(code);
    printf("], \"samples\": %llu, \"ran_ns\": %llu}\n",
           (unsigned long long)(totals.samples + totals.elsewhere),
           (unsigned long long)totals.ran_ns);
    return 0;
}
