/* Tests of the settings: values that the environment may have, and values that are refused. */
#include <string.h>

#include "base/settings.h"
#include "check.h"
#include "runtime/child_filter.h"

static char wrong[200];

static void read_one(char *variable)
{
    char *environ[] = {"PATH=/bin", variable, NULL};
    settings_read(environ, wrong, sizeof wrong);
}

static void taken(void)
{
    read_one("LOCKTOP_DIR=/run/x");
    CHECK(!*wrong && !strcmp(lt_settings.directory, "/run/x"));
    read_one("LOCKTOP_LEVEL=blocks");
    CHECK(!*wrong);
    CHECK_EQUAL(lt_settings.level, LT_LEVEL_BLOCKS);
    read_one("LOCKTOP_RING=1000");
    CHECK(!*wrong);
    CHECK_EQUAL(lt_settings.ring_records, 1024);
    read_one("LOCKTOP_MEMORY=64M");
    CHECK(!*wrong);
    CHECK_EQUAL(lt_settings.memory, 64 << 20);
    read_one("LOCKTOP_MEMORY=4096");
    CHECK_EQUAL(lt_settings.memory, 4096);
    read_one("LOCKTOP_QUIET=0");
    CHECK(!*wrong && !lt_settings.quiet);
    CHECK_EQUAL(lt_settings.order, ORDER_NOTED);
    read_one("LOCKTOP_ORDER=0");
    CHECK(!*wrong);
    CHECK_EQUAL(lt_settings.order, ORDER_NONE);
    read_one("LOCKTOP_ORDER=mark");
    CHECK(!*wrong);
    CHECK_EQUAL(lt_settings.order, ORDER_COOKIES);
    CHECK(lt_settings.calls && !*lt_settings.calls_match);
    CHECK_EQUAL(lt_settings.calls_depth, LT_CALLS_DEPTH);
    read_one("LOCKTOP_CALLS=off");
    CHECK(!*wrong && !lt_settings.calls);
    read_one("LOCKTOP_CALLS=on");
    CHECK(!*wrong && lt_settings.calls);
    read_one("LOCKTOP_CALLS_DEPTH=12");
    CHECK(!*wrong);
    CHECK_EQUAL(lt_settings.calls_depth, 12);
    read_one("LOCKTOP_CALLS_MIN_US=7");
    CHECK(!*wrong);
    CHECK_EQUAL(lt_settings.calls_min_us, 7);
    read_one("LOCKTOP_CALLS_MATCH=ns::,f*");
    CHECK(!*wrong && !strcmp(lt_settings.calls_match, "ns::,f*"));
    CHECK(!lt_settings.any_tracer);
    read_one("LOCKTOP_PTRACER=any");
    CHECK(!*wrong && lt_settings.any_tracer);
    read_one("LOCKTOP_PTRACER=none");
    CHECK(!*wrong && !lt_settings.any_tracer);
}

static void refused(void)
{
    static char *const variables[] = {
        "LOCKTOP_DIR=here",
        "LOCKTOP_LEVEL=loud",
        "LOCKTOP_RING=3",
        "LOCKTOP_RING=99999999",
        "LOCKTOP_RING=64K",
        "LOCKTOP_MEMORY=",
        "LOCKTOP_MEMORY=-1",
        "LOCKTOP_MEMORY=1MB",
        "LOCKTOP_MEMORY=99999999999999999999",
        "LOCKTOP_QUIET=yes",
        "LOCKTOP_CHILDREN=",
        "LOCKTOP_ORDER=on",
        "LOCKTOP_CALLS=",
        "LOCKTOP_CALLS=1",
        "LOCKTOP_CALLS_DEPTH=0",
        "LOCKTOP_CALLS_DEPTH=65537",
        "LOCKTOP_CALLS_MIN_US=0.5",
        "LOCKTOP_CALLS_MIN_US=",
        "LOCKTOP_PTRACER=ANY",
        "LOCKTOP_PTRACER=",
        "LOCKTOP_PTRACER=1",
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        read_one(variables[i]);
        CHECK(strstr(wrong, "is ignored"));
        CHECK(strlen(wrong) < sizeof wrong - 1);
    }
    CHECK_EQUAL(lt_settings.ring_records, 1024);
    CHECK_EQUAL(lt_settings.level, LT_LEVEL_BLOCKS);
    CHECK(lt_settings.calls);
}

static void names(void)
{
    CHECK(child_filter_forks("all", "/bin/x"));
    CHECK(!child_filter_forks("none", "/bin/x"));
    CHECK(child_filter_forks("x", "/bin/x") && child_filter_forks("a,x,b", "x"));
    CHECK(!child_filter_forks("ax,xb", "/bin/x") && !child_filter_forks("x", "/bin/"));
    CHECK(child_filter_forks("b,x", "/x/y/x") && !child_filter_forks("x/y", "/x/y"));
}

int main(void)
{
    taken();
    refused();
    names();
    CHECK(child_filter_program("none", "/bin/x", "/nowhere")); /* no ancestor is watched */
    return 0;
}
