/* The start of the library, and the hooks of fork and exit. */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/modes.h"
#include "interpose/checkers.h"
#include "interpose/fast_mutex.h"
#include "interpose/real.h"
#include "interpose/second_attempt.h"
#include "runtime/process.h"
#include "runtime/thread_enter.h"
#include "shm/file.h"

#define LT_CHECKED "another tool checks this program, and must see its locks as they are"

/* -z initfirst: runs before the constructors of every other library. */
__attribute__((constructor)) static void start(int argc, char **argv, char **environ)
{
    (void)argc;
    (void)argv;
    real_resolve();
    if (getauxval(AT_SECURE))
        return; /* a setuid program: its environment comes from another user */
    if (IS_NOP)
        return;
    if (is_under_thread_sanitizer() || is_under_checker_of_valgrind(environ)) {
        shm_name_mapping("locktop: " LT_CHECKED);
        return;
    }
    thread_enter_init();
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
