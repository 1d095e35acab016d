/* Decides by LOCKTOP_CHILDREN, and by the ancestors in /proc, whether this process is watched. */
#include "runtime/child_filter.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"

enum { GENERATIONS_MAX = 64, PARENT = 4, START_TIME = 22 }; /* fields of /proc/PID/stat */

/* Whether the program's name is among names with commas between. */
static bool is_named(const char *names, const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    size_t length = strlen(name);
    for (const char *entry = names; entry; entry = strchr(entry, ',')) {
        entry += *entry == ',';
        if (length && strncmp(entry, name, length) == 0 && (entry[length] == ',' || !entry[length]))
            return true;
    }
    return false;
}

bool child_filter_forks(const char *which, const char *program)
{
    return !strcmp(which, "all") || (strcmp(which, "none") != 0 && is_named(which, program));
}

/* strtoull() uses the locale, which may not be set up yet. */
static uint64_t number_at(const char *text)
{
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

/* Reads two fields of /proc/PID/stat (proc_pid_stat(5)). The second field, a name, may hold
 * anything. */
static bool stat_of(uint64_t pid, uint64_t *parent, uint64_t *start_time)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    long fd = sys_call6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return false;
    long length = sys_call3(SYS_read, fd, (long)text, sizeof text - 1);
    sys_call3(SYS_close, fd, 0, 0);
    if (length <= 0)
        return false;
    text[length] = 0;
    const char *rest = strrchr(text, ')');
    for (int field = 2; rest && field < START_TIME; field++) {
        rest = strchr(rest + 1, ' ');
        if (rest && field + 1 == PARENT)
            *parent = number_at(rest + 1);
    }
    *start_time = rest ? number_at(rest + 1) : 0;
    return rest != NULL;
}

static bool has_file(uint64_t pid, uint64_t start_time, const char *directory)
{
    char path[400];
    snprintf(path, sizeof path, "%s/locktop-%llu-%llu", directory, (unsigned long long)pid,
             (unsigned long long)start_time);
    return sys_call3(SYS_faccessat, AT_FDCWD, (long)path, 0 /* F_OK */) == 0;
}

/* Whether an ancestor of this process is watched. The process itself does not count: it may have
 * been watched before it executed this program. */
static bool is_child(const char *directory)
{
    uint64_t parent = 0, start_time = 0;
    bool has_stat = stat_of(sys_getpid(), &parent, &start_time);
    for (int i = 0; i < GENERATIONS_MAX && has_stat && parent; i++) {
        uint64_t pid = parent;
        has_stat = stat_of(pid, &parent, &start_time);
        if (has_stat && has_file(pid, start_time, directory))
            return true;
    }
    return false;
}

bool child_filter_program(const char *which, const char *program, const char *directory)
{
    return child_filter_forks(which, program) || !is_child(directory);
}
