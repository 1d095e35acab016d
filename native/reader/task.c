/* Reads the state of a process's threads from /proc. */
#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Fields of a stat line, counted from the state (proc_pid_stat(5)). */
enum { FIELD_USER = 11, FIELD_SYSTEM = 12, FIELD_DISK = 39 };

/* A change of a thread's name leaves no trace in the scheduler's counters. */
enum { NAMED_EVERY = 64 };

enum { LOCK_PI2 = 13 }; /* FUTEX_LOCK_PI2, which headers before Linux 5.14 do not have */

struct text {
    const char *cursor;
    const char *end;
};

/* ---- the text of the files ---- */

/* The next field, a number, and the blank or the last line end behind it. Without that character
 * the number may be cut off. */
static int number(struct text *text, uint64_t *value)
{
    uint64_t number = 0;
    const char *first = text->cursor;

    for (; text->cursor < text->end && *text->cursor >= '0' && *text->cursor <= '9'; text->cursor++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text->cursor - '0'), &number))
            return 0;
    if (text->cursor == first || text->cursor == text->end)
        return 0;
    *value = number;
    text->cursor++;
    return text->cursor[-1] == ' ' || (text->cursor[-1] == '\n' && text->cursor == text->end);
}

/* Steps over `count` fields of any sort. */
static int skip(struct text *text, int count)
{
    while (count-- > 0) {
        const char *blank = memchr(text->cursor, ' ', (size_t)(text->end - text->cursor));

        if (blank == NULL)
            return 0;
        text->cursor = blank + 1;
    }
    return 1;
}

/* The name may itself hold blanks and parentheses: it ends with the last parenthesis. */
static int parse_stat(struct text text, struct lt_task *task)
{
    const char *open = memchr(text.cursor, '(', (size_t)(text.end - text.cursor));
    const char *close = memrchr(text.cursor, ')', (size_t)(text.end - text.cursor));
    uint64_t user, system;

    if (open == NULL || close == NULL || close < open || text.end - close < 4)
        return 0;
    if (close[1] != ' ' || close[2] == ' ' || close[3] != ' ')
        return 0;
    task->name_size = (uint32_t)(close - open - 1);
    if (task->name_size > sizeof task->name)
        task->name_size = sizeof task->name;
    memcpy(task->name, open + 1, task->name_size);
    task->state = (uint8_t)close[2];
    text.cursor = close + 2;
    if (!skip(&text, FIELD_USER) || !number(&text, &user) || !number(&text, &system))
        return 0;
    task->cpu_ticks = user + system;
    if (skip(&text, FIELD_DISK - FIELD_SYSTEM - 1) && number(&text, &task->disk_ticks))
        task->facts |= LT_TASK_DISK;
    return 1;
}

static void parse_sched(struct text text, struct lt_task *task)
{
    if (number(&text, &task->ran_ns) && number(&text, &task->queued_ns) &&
        number(&text, &task->runs))
        task->facts |= LT_TASK_SCHED;
}

/* ---- the files ---- */

static void give_back(struct lt_task_table *table, int32_t *kept)
{
    if (*kept < 0)
        return;
    close(*kept);
    *kept = -1;
    table->kept--;
}

static void give_back_those_of(struct lt_task_table *table, struct lt_task_files *files)
{
    give_back(table, &files->stat);
    give_back(table, &files->schedstat);
    give_back(table, &files->syscall);
}

static int is_lack(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static int open_file(const struct lt_task_table *table, int32_t tid, const char *name)
{
    char path[48];

    snprintf(path, sizeof path, "%d/%s", (int)tid, name);
    return openat(table->directory, path, O_RDONLY | O_CLOEXEC);
}

/* Other parts of this process need descriptors too: if there are no more, this table gives some
 * up. */
static int open_or_make_room(struct lt_task_table *table, int32_t tid, const char *name)
{
    int fd = open_file(table, tid, name);

    if (fd >= 0 || !is_lack(errno) || table->kept == 0)
        return fd;
    table->max_kept = table->kept / 2;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->files[i].tid != 0)
            give_back_those_of(table, &table->files[i]);
    return open_file(table, tid, name);
}

/* Reads a thread's file by the descriptor kept for it, or by a new one. Keeps a new one if the file
 * is `wanted` again and there is room. Returns 0 or the errno; ESRCH for an empty file. */
static int read_file(struct lt_task_table *table, int32_t tid, const char *name, int32_t *kept,
                     int wanted, char *buffer, size_t size, struct text *text)
{
    int fd = *kept >= 0 ? *kept : open_or_make_room(table, tid, name);
    ssize_t got;
    int error;

    if (fd < 0)
        return errno;
    got = pread(fd, buffer, size, 0);
    error = got < 0 ? errno : got == 0 ? ESRCH : 0;
    if (error && *kept >= 0) {
        give_back(table, kept); /* the id may come back with another thread */
    } else if (*kept < 0 && wanted && !error && table->kept < table->max_kept) {
        *kept = fd;
        table->kept++;
    } else if (*kept < 0) {
        close(fd);
    }
    text->cursor = buffer;
    text->end = buffer + (got > 0 ? got : 0);
    return error;
}

static int read_stat(struct lt_task_table *table, uint32_t index, int wanted)
{
    struct lt_task_files *files = &table->files[index];
    struct lt_task *task = &table->tasks[index];
    char buffer[1024];
    struct text text;
    int error =
        read_file(table, files->tid, "stat", &files->stat, wanted, buffer, sizeof buffer, &text);

    if (!error && parse_stat(text, task))
        task->facts |= LT_TASK_THERE;
    return is_lack(error) ? -error : 0;
}

static int read_sched(struct lt_task_table *table, uint32_t index, struct lt_task *task)
{
    struct lt_task_files *files = &table->files[index];
    char buffer[128];
    struct text text;
    int error = read_file(table, files->tid, "schedstat", &files->schedstat, 1, buffer,
                          sizeof buffer, &text);

    if (!error)
        parse_sched(text, task);
    return is_lack(error) ? -error : 0;
}

static int read_call(struct lt_task_table *table, uint32_t index, int wanted)
{
    struct lt_task_files *files = &table->files[index];
    struct lt_task *task = &table->tasks[index];
    struct text text;
    int error = read_file(table, files->tid, "syscall", &files->syscall, wanted, (char *)task->call,
                          sizeof task->call, &text);

    task->call_size = error ? 0 : (uint32_t)(text.end - text.cursor);
    if (is_lack(error) || error == EPERM || error == EACCES)
        return -error;
    if (error)
        task->facts &= ~(uint32_t)LT_TASK_THERE; /* the thread ended */
    return 0;
}

/* ---- one reading, one sample ---- */

static void note_time(struct lt_task *task)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    task->at_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Reads the schedstat first: a thread that slept after that reading, and has the same schedstat
 * later, has slept since. */
static int read_task(struct lt_task_table *table, uint32_t index, int calls)
{
    struct lt_task *task = &table->tasks[index];
    int error;

    memset(task, 0, sizeof *task);
    error = read_sched(table, index, task);
    if (!error)
        error = read_stat(table, index, 1);
    if (!error && calls && task->facts & LT_TASK_THERE)
        error = read_call(table, index, 1);
    if (task->facts & LT_TASK_THERE && task->state != 'R' && task->call[0] != 'r')
        task->facts |= LT_TASK_ASLEEP;
    note_time(task);
    return error;
}

int lt_read_tasks(struct lt_task_table *table, const uint32_t *indexes, uint32_t count, int calls)
{
    for (uint32_t i = 0; i < count; i++) {
        int error;

        if (indexes[i] >= table->count || table->files[indexes[i]].tid == 0)
            return -EINVAL;
        error = read_task(table, indexes[i], calls);
        if (error)
            return error;
    }
    return 0;
}

int lt_read_scheds(struct lt_task_table *table, const uint32_t *indexes, uint32_t count,
                   struct lt_sched *scheds)
{
    for (uint32_t i = 0; i < count; i++) {
        struct lt_task task = {0};
        int error;

        if (indexes[i] >= table->count || table->files[indexes[i]].tid == 0)
            return -EINVAL;
        error = read_sched(table, indexes[i], &task);
        if (error)
            return error;
        note_time(&task);
        scheds[i] = (struct lt_sched){.at_ns = task.at_ns,
                                      .ran_ns = task.ran_ns,
                                      .queued_ns = task.queued_ns,
                                      .runs = task.facts & LT_TASK_SCHED ? task.runs : 0};
    }
    return 0;
}

/* Without the kernel's counts nothing shows that a thread slept all the time. */
static int is_same_sleep(const struct lt_task *before, const struct lt_task *now)
{
    return before->facts & now->facts & LT_TASK_SCHED && now->runs != 0 &&
           before->runs == now->runs && before->ran_ns == now->ran_ns &&
           before->queued_ns == now->queued_ns;
}

/* Whether a call is a wait for a futex, by the text of the syscall file (futex(2)). The text is the
 * call's number, an address and the operation. A program of another architecture has other numbers:
 * then the wait is not seen. */
static int is_futex_wait(const struct lt_task *task)
{
    char text[sizeof task->call + 1];
    unsigned long call, operation;

    memcpy(text, task->call, task->call_size);
    text[task->call_size] = '\0';
    if (sscanf(text, "%lu 0x%*x 0x%lx", &call, &operation) != 2 || call != SYS_futex)
        return 0;
    switch ((int)operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI:
    case LOCK_PI2: return 1;
    default: return 0;
    }
}

/* Reads all of one thread; `now` has its schedstat. All parts of a reading must belong together.
 * Either the thread slept all the while, or it runs (then its call is the word "running"). A thread
 * that waits for a futex sleeps. So its stat is read only for the name, if that is `due`. Reading
 * it costs as much as all else. Descriptors are kept for a thread that moves: the others are not
 * read again soon. */
static int sample(struct lt_task_table *table, uint32_t index, const struct lt_task *now, int due)
{
    struct lt_task *task = &table->tasks[index];
    int is_named = task->facts & LT_TASK_THERE && !due, moves = task->facts & LT_TASK_THERE && !due,
        error;
    struct lt_task after = {0};

    task->ran_ns = now->ran_ns;
    task->queued_ns = now->queued_ns;
    task->runs = now->runs;
    task->facts = now->facts | LT_TASK_THERE;
    error = read_call(table, index, moves);
    if (error || !(task->facts & LT_TASK_THERE))
        return error;
    if (is_named && is_futex_wait(task)) {
        task->state = 'S';
    } else {
        task->facts &= ~(uint32_t)LT_TASK_THERE;
        error = read_stat(table, index, moves);
        if (error || !(task->facts & LT_TASK_THERE))
            return error;
    }
    note_time(task);
    error = read_sched(table, index, &after);
    if (is_same_sleep(now, &after) && task->call[0] != 'r')
        task->facts |= LT_TASK_ASLEEP;
    return error;
}

int lt_sample_tasks(struct lt_task_table *table, uint32_t round, uint32_t *read)
{
    uint32_t count = 0;

    for (uint32_t index = 0; index < table->count; index++) {
        struct lt_task *task = &table->tasks[index];
        struct lt_task now = {0};
        int due = (round + index) % NAMED_EVERY == 0, error;

        if (table->files[index].tid == 0)
            continue;
        error = read_sched(table, index, &now);
        if (!error && task->facts & LT_TASK_ASLEEP && is_same_sleep(task, &now)) {
            if (!due)
                continue;
            now.facts |= LT_TASK_SLEPT;
        }
        if (task->facts & LT_TASK_SCHED && !(now.facts & LT_TASK_SCHED))
            task->facts = 0; /* the thread ended */
        else if (!error)
            error = sample(table, index, &now, due);
        if (error)
            return error;
        read[count++] = index;
    }
    return (int)count;
}

int lt_still_sleeps(struct lt_task_table *table, uint32_t index)
{
    struct lt_task now = {0};

    if (index >= table->count || table->files[index].tid == 0 || read_sched(table, index, &now))
        return 0;
    return table->tasks[index].facts & LT_TASK_ASLEEP && is_same_sleep(&table->tasks[index], &now);
}

uint32_t lt_pick_asleep(struct lt_task_table *table, uint32_t *indexes, uint32_t count)
{
    uint32_t asleep = 0;

    for (uint32_t i = 0; i < count; i++)
        if (lt_still_sleeps(table, indexes[i]))
            indexes[asleep++] = indexes[i];
    return asleep;
}

void lt_add_task(struct lt_task_table *table, uint32_t index, int32_t tid)
{
    struct lt_task_files *files = &table->files[index];

    files->tid = tid;
    files->stat = files->schedstat = files->syscall = -1;
    memset(&table->tasks[index], 0, sizeof table->tasks[index]);
}

void lt_forget_task(struct lt_task_table *table, uint32_t index)
{
    struct lt_task_files *files = &table->files[index];

    if (files->tid != 0)
        give_back_those_of(table, files);
    files->tid = 0;
}
