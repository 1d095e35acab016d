/* Counts the events of a thread by perf_event_open(2). */
#include "counter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int lt_open_counter(uint32_t type, uint64_t config, int32_t tid, int user_only)
{
    struct perf_event_attr wanted;
    long fd;

    memset(&wanted, 0, sizeof wanted);
    wanted.size = sizeof wanted;
    wanted.type = type;
    wanted.config = config;
    wanted.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    wanted.exclude_kernel = user_only ? 1 : 0;
    wanted.exclude_hv = user_only ? 1 : 0;
    fd = syscall(SYS_perf_event_open, &wanted, tid, -1, -1, (unsigned long)PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

int lt_read_counter(int fd, struct lt_count *count)
{
    uint64_t words[3];

    if (read(fd, words, sizeof words) != (ssize_t)sizeof words)
        return 0;
    count->value = words[0];
    count->enabled_ns = words[1];
    count->running_ns = words[2];
    return 1;
}
