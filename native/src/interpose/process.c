/* The start of the library, and the hooks of fork and exit. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/modes.h"
#include "interpose/fast_mutex.h"
#include "interpose/real.h"
#include "interpose/second_attempt.h"
#include "runtime/process.h"

/* ThreadSanitizer must see the program's locks as they are, and would report the library's tables,
 * which it does not understand. Linked into the program, it also answers calls of libc functions,
 * of snprintf() for example. These calls may not come before the sanitizer's own start, which is
 * later. */
extern void __tsan_init(void) __attribute__((weak)); /* a dlsym() that fails allocates */

static bool is_under_thread_sanitizer(void)
{
    if (__tsan_init) /* the sanitizer is in a library */
        return true;
    /* The sanitizer may be in the program: then the program's functions come first. */
    Dl_info lock, ours;
    return (void *)snprintf != dlsym(RTLD_NEXT, "snprintf") &&
           dladdr((const void *)pthread_mutex_lock, &lock) && dladdr(&lt_control, &ours) &&
           lock.dli_fbase != ours.dli_fbase;
}

/* -z initfirst: runs before the constructors of every other library. */
__attribute__((constructor)) static void start(int argc, char **argv, char **environ)
{
    (void)argc;
    (void)argv;
    real_resolve();
    if (getauxval(AT_SECURE))
        return; /* a setuid program: its environment comes from another user */
    if (IS_NOP || is_under_thread_sanitizer())
        return;
    process_start(environ, fast_mutex_works(environ) ? mutex_read_tid : NULL);
    second_attempt_init(); /* the clock is known now */
}

/* fork() runs the handlers that process_start() registers; _Fork() runs none. */
EXPORT pid_t _Fork(void)
{
    process_before_fork();
    pid_t pid = real__Fork();
    if (pid == 0)
        process_after_fork_in_child();
    else
        process_after_fork();
    return pid;
}

EXPORT void _exit(int status)
{
    process_end();
    real__exit(status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status)
{
    _exit(status);
}
