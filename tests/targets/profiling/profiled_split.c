/* Splits its CPU time between two functions, under a profile of the source and interval that the
 * arguments name. Says what the profile counted, and what the clock of CPU time says.
 */
#include "profiled_work.h"

DEFINE_WORK(first_work)
DEFINE_WORK(second_work)

static KEPT void fault_pages(int pages)
{
    for (int i = 0; i < pages; i++) {
        volatile char *page = aligned_alloc(1 << 16, 1 << 16);
        page[0] = 1;
    }
}

static uint64_t buckets_of(const char *function)
{
    const void *at;
    size_t size;
    profile_must(locktop_profile_find(function, &at, &size));
    return (size + 3) / 4;
}

int main(int argc, char **argv)
{
    int source = argc > 1 ? atoi(argv[1]) : LOCKTOP_TIMER;
    uint64_t interval = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    int runs = argc > 3 ? atoi(argv[3]) : 10;
    int profile =
        profile_must(locktop_profile_create(ADDRESS_OF(first_work), LOCKTOP_WHOLE_FUNCTION, 4,
                                            source, interval, LOCKTOP_THIS_THREAD, "split"));
    profile_must(locktop_profile_add(profile, ADDRESS_OF(second_work) + 1, LOCKTOP_WHOLE_FUNCTION));
    profile_must(locktop_profile_start(profile));
    uint64_t begin = cpu_ns(), one = 0, two = 0;
    for (int i = 0; i < runs; i++) {
        one += first_work(150);
        two += second_work(50);
    }
    fault_pages(100);
    uint64_t all = cpu_ns() - begin;
    profile_must(locktop_profile_stop(profile));
    struct locktop_profile_totals totals;
    uint64_t first = buckets_of("first_work"), second = buckets_of("second_work");
    uint64_t in_first = read_counts(profile, &totals, 0, first);
    uint64_t in_second = read_counts(profile, &totals, first, totals.buckets);
    printf("{\"code\": 0, \"first\": %llu, \"second\": %llu, \"first_ns\": %llu, \"second_ns\": "
           "%llu, \"cpu_ns\": %llu, \"samples\": %llu, \"elsewhere\": %llu, \"lost\": %llu, "
           "\"interval\": %llu, \"buckets\": %llu, \"expected_buckets\": %llu, \"ran_ns\": %llu}\n",
           (unsigned long long)in_first, (unsigned long long)in_second, (unsigned long long)one,
           (unsigned long long)two, (unsigned long long)all, (unsigned long long)totals.samples,
           (unsigned long long)totals.elsewhere, (unsigned long long)totals.lost,
           (unsigned long long)totals.interval, (unsigned long long)totals.buckets,
           (unsigned long long)(first + second), (unsigned long long)totals.ran_ns);
    fflush(stdout);
    hear();
    return 0;
}
