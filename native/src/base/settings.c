/* Reads the LOCKTOP_* variables of the environment. */
#include "base/settings.h"

#include <stdio.h>
#include <string.h>

struct settings lt_settings = {.directory = "/dev/shm",
                               .level = LT_LEVEL_CONTENDED,
                               .ring_records = RING_RECORDS,
                               .children = "all",
                               .order = ORDER_NOTED,
                               .calls = true,
                               .calls_depth = LT_CALLS_DEPTH,
                               .quiet = true};

/* getenv() does not work yet: the library starts before libc's own constructor. */
static const char *environment(char *const *environ, const char *name)
{
    size_t length = strlen(name);
    for (; environ && *environ; environ++)
        if (strncmp(*environ, name, length) == 0 && (*environ)[length] == '=')
            return *environ + length + 1;
    return NULL;
}

/* A number, followed by K, M or G if `units` allows that. */
static bool parse(const char *text, bool units, uint64_t *value)
{
    static const char letters[] = "KMG";
    const char *letter;
    *value = 0;
    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (*value > UINT64_MAX / 2 / 10)
            return false;
        *value = *value * 10 + (uint64_t)(*text - '0');
    }
    if (units && *text && (letter = strchr(letters, *text))) {
        unsigned shift = 10 * (unsigned)(letter - letters + 1);
        if (*value > UINT64_MAX >> shift)
            return false;
        *value <<= shift;
        text++;
    }
    return *text == 0;
}

/* LOCKTOP_LEVEL's value; -1 if there is no such level. */
static int level_of(const char *name)
{
    static const char *const names[] = {"dormant", "counting", "contended", "blocks", "all"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

static bool read_directory(const char *value)
{
    if (*value != '/' || strlen(value) >= sizeof lt_settings.directory)
        return false;
    strcpy(lt_settings.directory, value);
    return true;
}

static bool read_level(const char *value)
{
    int level = level_of(value);
    if (level >= 0)
        lt_settings.level = (uint32_t)level;
    return level >= 0;
}

static bool read_ring(const char *value)
{
    uint64_t records;
    if (!parse(value, false, &records) || records < RING_RECORDS_MIN || records > RING_RECORDS_MAX)
        return false;
    lt_settings.ring_records = RING_RECORDS_MIN;
    while (lt_settings.ring_records < records)
        lt_settings.ring_records *= 2;
    return true;
}

static bool read_memory(const char *value)
{
    return parse(value, true, &lt_settings.memory);
}

static bool read_children(const char *value)
{
    lt_settings.children = value;
    return *value != 0;
}

/* Any value but "0" turns the switch on; any value but "0" and "1" is refused. */
static bool read_switch(const char *value, bool *on)
{
    *on = strcmp(value, "0") != 0;
    return !*on || !strcmp(value, "1");
}

static bool read_order(const char *value)
{
    bool on;
    if (strcmp(value, "mark") == 0)
        lt_settings.order = ORDER_COOKIES;
    else if (read_switch(value, &on))
        lt_settings.order = on ? ORDER_NOTED : ORDER_NONE;
    else
        return false;
    return true;
}

static bool read_calls(const char *value)
{
    bool is_on = strcmp(value, "on") == 0;
    if (!is_on && strcmp(value, "off") != 0)
        return false;
    lt_settings.calls = is_on;
    return true;
}

static bool read_calls_depth(const char *value)
{
    uint64_t depth;
    if (!parse(value, false, &depth) || !depth || depth > LT_CALLS_DEPTH_MAX)
        return false;
    lt_settings.calls_depth = (uint32_t)depth;
    return true;
}

static bool read_calls_min_us(const char *value)
{
    uint64_t us;
    if (!parse(value, false, &us) || us > UINT32_MAX)
        return false;
    lt_settings.calls_min_us = (uint32_t)us;
    return true;
}

static bool read_calls_match(const char *value)
{
    if (strlen(value) >= sizeof lt_settings.calls_match)
        return false;
    strcpy(lt_settings.calls_match, value);
    return true;
}

static bool read_ptracer(const char *value)
{
    lt_settings.any_tracer = strcmp(value, "any") == 0;
    return lt_settings.any_tracer || !strcmp(value, "none");
}

static bool read_quiet(const char *value)
{
    return read_switch(value, &lt_settings.quiet);
}

static const struct {
    const char *name;
    bool (*read)(const char *value);
    const char *allowed;
} variables[] = {
    {"LOCKTOP_DIR", read_directory, "use a path that begins with /"},
    {"LOCKTOP_LEVEL", read_level, "use dormant, counting, contended, blocks or all"},
    {"LOCKTOP_RING", read_ring, "use 16 to 1048576 records"},
    {"LOCKTOP_MEMORY", read_memory, "use a number of bytes, as 64M or 2G"},
    {"LOCKTOP_CHILDREN", read_children, "use all, none, or names with commas between"},
    {"LOCKTOP_ORDER", read_order, "use 0, 1 or mark"},
    {"LOCKTOP_CALLS", read_calls, "use on or off"},
    {"LOCKTOP_CALLS_DEPTH", read_calls_depth, "use 1 to 65536 calls"},
    {"LOCKTOP_CALLS_MATCH", read_calls_match, "use at most 1023 characters"},
    {"LOCKTOP_CALLS_MIN_US", read_calls_min_us, "use a number of microseconds"},
    {"LOCKTOP_PTRACER", read_ptracer, "use any or none"},
    {"LOCKTOP_QUIET", read_quiet, "use 0 or 1"},
};

void settings_read(char *const *environ, char *wrong, size_t size)
{
    *wrong = 0;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = environment(environ, variables[i].name);
        if (value && !variables[i].read(value))
            snprintf(wrong, size, "%s=%.60s is ignored: %s", variables[i].name, value,
                     variables[i].allowed);
    }
}
