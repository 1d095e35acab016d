/* The target programs share this file: a clock of their own, and the handshake with the test.
 *
 * A target writes one line when a state is reached: "ready", or its ground truth as JSON. Then the
 * target waits for a line on stdin before it goes on. The end of stdin ends the target.
 */
#ifndef TARGET_H
#define TARGET_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, unused)) /* keeps a frame of its own in every stack */

static KEPT double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static KEPT void pause_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static KEPT int own_tid(void)
{
    return (int)syscall(SYS_gettid);
}

/* True if the kernel says that a thread of this process sleeps. */
static KEPT int is_asleep(int tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[2] == 'S';
}

/* True if a thread of this process sleeps in a futex call for a word of this object. */
static KEPT int sleeps_at(int tid, const void *object, size_t size)
{
    char path[64];
    long number = -1;
    unsigned long word = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE *file = fopen(path, "r");
    int fields = file ? fscanf(file, "%ld %lx", &number, &word) : 0;
    if (file)
        fclose(file);
    return fields == 2 && number == SYS_futex && word - (unsigned long)object < size;
}

/* Without stdio: a scan would see the locks of stdio too. */
static KEPT void say(const char *line)
{
    size_t length = strlen(line);
    if (write(1, line, length) != (ssize_t)length || write(1, "\n", 1) != 1)
        _exit(3);
}

static KEPT void hear(void)
{
    char c = 0;
    while (c != '\n') {
        ssize_t length = read(0, &c, 1);
        if (length == 0 || (length < 0 && errno != EINTR)) /* a profiler may send signals */
            _exit(0);
    }
}

static KEPT void must(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    exit(3);
}

static KEPT pthread_t start(void *(*run)(void *), void *argument, const char *name)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, run, argument), "pthread_create");
    if (name)
        pthread_setname_np(thread, name);
    return thread;
}

/* A self-checking target counts results that differ from the promises of POSIX and glibc. */
static int failures;

static KEPT void check_equal(const char *what, long got, long wanted)
{
    if (got == wanted)
        return;
    failures++;
    printf("%s: got %ld, wanted %ld\n", what, got, wanted);
}

static KEPT int verdict(void)
{
    puts(failures ? "failed" : "ok");
    return failures != 0;
}

/* As verdict(). The process stays for a scan until stdin has a line or ends. */
static KEPT int verdict_and_stay(void)
{
    char c = 0;
    int status = verdict();
    fflush(stdout);
    while (c != '\n' && read(0, &c, 1) == 1)
        continue;
    return status;
}

#endif
