/* Makes profiles that cannot be compared: of two functions, and with buckets of two sizes. Runs
 * until its input ends.
 */
#include "profiled_work.h"

DEFINE_WORK(first_work)
DEFINE_WORK(second_work)

static void make(const void *start, size_t bucket_size, const char *name)
{
    profile_must(locktop_profile_create(start, LOCKTOP_WHOLE_FUNCTION, bucket_size, LOCKTOP_TIMER,
                                        0, LOCKTOP_THIS_THREAD, name));
}

int main(void)
{
    make(ADDRESS_OF(first_work), 4, "one");
    make(ADDRESS_OF(second_work), 4, "other");
    make(ADDRESS_OF(first_work), 8, "coarse");
    make(ADDRESS_OF(first_work), 4, "twice");
    make(ADDRESS_OF(first_work), 4, "twice");
    say("ready");
    hear();
    return 0;
}
