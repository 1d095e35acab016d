/* Calls the functions of profiles with wrong arguments, and checks each code and its text. */
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>

#include "profiled_work.h"

DEFINE_WORK(work)

static void refused(const char *what, int code, int wanted, const char *argument)
{
    const char *text = locktop_profile_error(code);
    check_equal(what, code, wanted);
    if (strncmp(text, argument, strlen(argument)) != 0) {
        failures++;
        printf("%s: the text is \"%s\"\n", what, text);
    }
}

static int create(const void *start, size_t size, size_t bucket_size, int source, uint64_t interval,
                  int scope)
{
    return locktop_profile_create(start, size, bucket_size, source, interval, scope, "errors");
}

static void wrong_regions(void)
{
    static char data[64];
    const void *code = ADDRESS_OF(work);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    refused("empty", create(code, 0, 4, 0, 0, 0), LOCKTOP_EMPTY_REGION, "size:");
    refused("NULL", create(NULL, 16, 4, 0, 0, 0), LOCKTOP_NOT_CODE, "start:");
    refused("data", create(data, sizeof data, 4, 0, 0, 0), LOCKTOP_NOT_CODE, "start:");
    refused("a page", create(page, 4096, 4, 0, 0, 0), LOCKTOP_NOT_CODE, "start:");
    refused("beyond the code", create(code, 1 << 30, 4096, 0, 0, 0), LOCKTOP_NOT_CODE, "start:");
    refused("beyond the end", create(code, SIZE_MAX - 1, 4, 0, 0, 0), LOCKTOP_BAD_REGION, "size:");
    refused("no function", create(data, LOCKTOP_WHOLE_FUNCTION, 4, 0, 0, 0), LOCKTOP_NOT_A_FUNCTION,
            "start");
    const void *start;
    size_t size;
    refused("no symbol", locktop_profile_find("no_such_function", &start, &size),
            LOCKTOP_NOT_A_FUNCTION, "start, symbol:");
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    int made = create(page, 4096, 4, 0, 0, 0); /* code made at run time */
    check_equal("code of the program's own", made > 0, 1);
    check_equal("destroy", locktop_profile_destroy(made), 0);
}

static void wrong_numbers(void)
{
    const void *code = ADDRESS_OF(work);
    static const size_t sizes[] = {0, 1, 2, 3, 5, 6, 12, 100, SIZE_MAX};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        refused("bucket size", create(code, 16, sizes[i], 0, 0, 0), LOCKTOP_BAD_BUCKET_SIZE,
                "bucket_size:");
    refused("source", create(code, 16, 4, 9, 0, 0), LOCKTOP_BAD_SOURCE, "source:");
    refused("source", create(code, 16, 4, -1, 0, 0), LOCKTOP_BAD_SOURCE, "source:");
    refused("scope", create(code, 16, 4, 0, 0, 2), LOCKTOP_BAD_SCOPE, "scope:");
    for (int source = 0; source < 9; source++) {
        struct locktop_profile_source_info info;
        check_equal("info", locktop_profile_source_info(source, &info), 0);
        if (info.min_interval > 1)
            refused("too short", create(code, 16, 4, source, info.min_interval - 1, 0),
                    LOCKTOP_BAD_INTERVAL, "interval:");
        refused("too long", create(code, 16, 4, source, info.max_interval + 1, 0),
                LOCKTOP_BAD_INTERVAL, "interval:");
        if (info.status != LOCKTOP_OK)
            refused(info.name, create(code, 16, 4, source, 0, 0), (int)info.status, "source:");
    }
    refused("info", locktop_profile_source_info(9, NULL), LOCKTOP_BAD_SOURCE, "source:");
    refused("info", locktop_profile_source_info(0, NULL), LOCKTOP_BAD_POINTER, "info");
}

static void wrong_use(void)
{
    const void *code = ADDRESS_OF(work);
    struct locktop_profile_totals totals;
    int profile = create(code, 64, 4, 0, 0, 0);
    refused("stop", locktop_profile_stop(profile), LOCKTOP_NOT_RUNNING, "profile:");
    refused("overlap", locktop_profile_add(profile, code, 4), LOCKTOP_OVERLAP, "start:");
    refused("overlap", locktop_profile_add(profile, (const char *)code + 63, 2), LOCKTOP_OVERLAP,
            "start:");
    check_equal("beside", locktop_profile_add(profile, (const char *)code + 64, 4), 0);
    refused("few counts", locktop_profile_read(profile, counts, 16, &totals), LOCKTOP_BAD_COUNTS,
            "count:");
    check_equal("all counts", locktop_profile_read(profile, counts, 17, &totals), 0);
    check_equal("buckets", (long)totals.buckets, 17);
    check_equal("start", locktop_profile_start(profile), 0);
    refused("start again", locktop_profile_start(profile), LOCKTOP_RUNNING, "profile:");
    refused("add", locktop_profile_add(profile, (const char *)code + 68, 4), LOCKTOP_RUNNING,
            "profile:");
    check_equal("destroy", locktop_profile_destroy(profile), 0);
    for (int n = -1; n < 2; n++) {
        int gone = n < 1 ? n : profile;
        refused("gone", locktop_profile_start(gone), LOCKTOP_NO_PROFILE, "profile:");
        refused("gone", locktop_profile_stop(gone), LOCKTOP_NO_PROFILE, "profile:");
        refused("gone", locktop_profile_read(gone, NULL, 0, &totals), LOCKTOP_NO_PROFILE,
                "profile:");
        refused("gone", locktop_profile_destroy(gone), LOCKTOP_NO_PROFILE, "profile:");
        refused("gone", locktop_profile_add(gone, code, 4), LOCKTOP_NO_PROFILE, "profile:");
    }
}

static void many(void)
{
    static int made[257];
    const char *code = ADDRESS_OF(work);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 256; i++)
            check_equal("one of many", (made[i] = create(code, 64, 4, 0, 0, 0)) > 0, 1);
        refused("too many", create(code, 64, 4, 0, 0, 0), LOCKTOP_TOO_MANY_PROFILES, "profile:");
        for (int i = 0; i < 256; i++)
            check_equal("destroy", locktop_profile_destroy(made[i]), 0);
    }
    int profile = create(code, 4, 4, 0, 0, 0);
    for (int i = 1; i < LOCKTOP_REGIONS_MAX; i++)
        check_equal("add", locktop_profile_add(profile, code + 4 * i, 4), 0);
    refused("regions", locktop_profile_add(profile, code + 40, 4), LOCKTOP_TOO_MANY_REGIONS,
            "profile:");
    locktop_profile_destroy(profile);
    char *large = mmap(NULL, 1 << 25, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    refused("buckets", create(large, 1 << 25, 4, 0, 0, 0), LOCKTOP_TOO_MANY_BUCKETS,
            "bucket_size:");
}

static void unloaded(const char *library)
{
    struct locktop_profile_totals totals;
    void *handle = dlopen(library, RTLD_NOW);
    const void *code = dlsym(handle, "plugin_work");
    int profile = create(code, LOCKTOP_WHOLE_FUNCTION, 4, 0, 0, LOCKTOP_ALL_THREADS);
    int other = create(ADDRESS_OF(work), 16, 4, 0, 0, LOCKTOP_ALL_THREADS);
    check_equal("start", locktop_profile_start(profile), 0);
    check_equal("start", locktop_profile_start(other), 0);
    do /* on a busy host, one spell of work may have no sample */
        ((void (*)(unsigned))(uintptr_t)code)(200);
    while (locktop_profile_read(profile, counts, BUCKETS_MAX, &totals) == LOCKTOP_OK &&
           totals.samples == 0);
    dlclose(handle);
    refused("read", locktop_profile_read(profile, counts, BUCKETS_MAX, &totals), LOCKTOP_UNLOADED,
            "start:");
    check_equal("samples are kept", totals.samples > 0, 1);
    check_equal("threads", (long)totals.threads, 0);
    refused("start", locktop_profile_start(profile), LOCKTOP_UNLOADED, "start:");
    refused("stop", locktop_profile_stop(profile), LOCKTOP_UNLOADED, "start:");
    refused("create", create(code, 16, 4, 0, 0, 0), LOCKTOP_NOT_CODE, "start:");
    check_equal("the other one", locktop_profile_stop(other), 0);
    say("unloaded");
    hear();
    check_equal("destroy", locktop_profile_destroy(profile), 0);
}

static volatile int taken;

static void take(int number)
{
    (void)number;
    taken++;
}

static void taken_over(void)
{
    struct locktop_profile_totals totals;
    int profile = create(ADDRESS_OF(work), LOCKTOP_WHOLE_FUNCTION, 4, 0, 0, 0);
    check_equal("start", locktop_profile_start(profile), 0);
    for (int number = SIGRTMIN; number <= SIGRTMAX - 2; number++)
        signal(number, take);
    work(100);
    check_equal("read", locktop_profile_read(profile, NULL, 0, &totals), 0);
    signal(SIGRTMAX - 1, take);
    refused("read", locktop_profile_read(profile, NULL, 0, &totals), LOCKTOP_TAKEN_OVER,
            "profile:");
    int before = taken;
    work(100);
    check_equal("no further signal", taken, before);
    check_equal("start again", locktop_profile_start(profile), 0); /* with SIGRTMAX */
    signal(SIGRTMAX, take);
    refused("stop", locktop_profile_stop(profile), LOCKTOP_TAKEN_OVER, "profile:");
    refused("start", locktop_profile_start(profile), LOCKTOP_NO_SIGNAL, "scope:");
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "unloaded"))
        unloaded(argv[2]);
    else if (argc > 1 && !strcmp(argv[1], "taken"))
        taken_over();
    else {
        wrong_regions();
        wrong_numbers();
        wrong_use();
        many();
    }
    return verdict();
}
