#define _GNU_SOURCE /* memrchr */
#include "reader.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* Fields of a stat line, counted from the state (proc_pid_stat(5)). */
enum { FIELD_USER = 11, FIELD_SYSTEM = 12, FIELD_DISK = 39 };

struct text {
    const char *at;
    const char *end;
};

/* The next field, a number, and the blank or the last line end behind it: without that it may be cut off. */
static int number(struct text *text, uint64_t *value)
{
    uint64_t found = 0;
    const char *first = text->at;

    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        if (__builtin_mul_overflow(found, 10, &found) ||
            __builtin_add_overflow(found, (uint64_t)(*text->at - '0'), &found))
            return 0;
    if (text->at == first || text->at == text->end)
        return 0;
    *value = found;
    text->at++;
    return text->at[-1] == ' ' || (text->at[-1] == '\n' && text->at == text->end);
}

/* Steps over `count` fields of any sort. */
static int skip(struct text *text, int count)
{
    while (count-- > 0) {
        const char *blank = memchr(text->at, ' ', (size_t)(text->end - text->at));

        if (blank == NULL)
            return 0;
        text->at = blank + 1;
    }
    return 1;
}

static int read_text(int fd, char *buffer, size_t size, struct text *text)
{
    ssize_t got = pread(fd, buffer, size, 0);

    text->at = buffer;
    text->end = buffer + (got > 0 ? got : 0);
    return got > 0;
}

/* The name may itself hold blanks and parentheses: it ends with the last one. */
static int read_stat(int fd, struct lt_task *task)
{
    char buffer[1024];
    struct text text;
    const char *open, *close;
    uint64_t user, system;

    if (!read_text(fd, buffer, sizeof buffer, &text))
        return 0;
    open = memchr(text.at, '(', (size_t)(text.end - text.at));
    close = memrchr(text.at, ')', (size_t)(text.end - text.at));
    if (open == NULL || close == NULL || close < open || text.end - close < 4)
        return 0;
    if (close[1] != ' ' || close[2] == ' ' || close[3] != ' ')
        return 0;
    task->name_size = (uint32_t)(close - open - 1);
    if (task->name_size > sizeof task->name)
        task->name_size = sizeof task->name;
    memcpy(task->name, open + 1, task->name_size);
    task->state = (uint8_t)close[2];
    text.at = close + 2;
    if (!skip(&text, FIELD_USER) || !number(&text, &user) || !number(&text, &system))
        return 0;
    task->cpu_ticks = user + system;
    if (skip(&text, FIELD_DISK - FIELD_SYSTEM - 1) && number(&text, &task->disk_ticks))
        task->known |= LT_TASK_DISK;
    return 1;
}

static void read_sched(int fd, struct lt_task *task)
{
    char buffer[128];
    struct text text;

    if (read_text(fd, buffer, sizeof buffer, &text) && number(&text, &task->ran_ns) &&
        number(&text, &task->queued_ns) && number(&text, &task->runs))
        task->known |= LT_TASK_SCHED;
}

void lt_read_tasks(const int32_t *fds, uint32_t count, struct lt_task *tasks)
{
    for (uint32_t i = 0; i < count; i++) {
        struct timespec now;
        struct lt_task *task = &tasks[i];

        memset(task, 0, sizeof *task);
        if (!read_stat(fds[2 * i], task))
            continue;
        task->known |= LT_TASK_THERE;
        if (fds[2 * i + 1] >= 0)
            read_sched(fds[2 * i + 1], task);
        clock_gettime(CLOCK_MONOTONIC, &now);
        task->at_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
}
