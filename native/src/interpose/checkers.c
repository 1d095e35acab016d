/* Recognises ThreadSanitizer by its functions, and Valgrind by what it preloads. */
#include "interpose/checkers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/modes.h"

/* ThreadSanitizer must see the program's locks as they are, and would report the library's tables,
 * which it does not understand. Linked into the program, it also answers calls of libc functions,
 * of snprintf() for example. These calls may not come before the sanitizer's own start, which is
 * later. */
extern void __tsan_init(void) __attribute__((weak)); /* a dlsym() that fails allocates */

bool is_under_thread_sanitizer(void)
{
    if (__tsan_init) /* the sanitizer is in a library */
        return true;
    /* The sanitizer may be in the program: then the program's functions come first. Another
     * sanitizer takes the place of pthread_mutex_lock(), but not of the reader-writer locks. */
    Dl_info lock, ours;
    return (void *)snprintf != dlsym(RTLD_NEXT, "snprintf") &&
           dladdr((const void *)pthread_rwlock_rdlock, &lock) && dladdr(&lt_control, &ours) &&
           lock.dli_fbase != ours.dli_fbase;
}

static bool is_preloaded(char *const *environ, const char *name)
{
    for (; environ && *environ; environ++)
        if (!strncmp(*environ, "LD_PRELOAD=", 11))
            return strstr(*environ, name) != NULL;
    return false;
}

bool is_under_valgrind(char *const *environ)
{
    return is_preloaded(environ, "vgpreload_");
}

/* The tables have atomic writers and readers, which drd and helgrind take for races. A search in a
 * stack reads words that the program did not write, which memcheck reports. */
bool is_under_checker_of_valgrind(char *const *environ)
{
    return is_preloaded(environ, "vgpreload_drd") || is_preloaded(environ, "vgpreload_helgrind") ||
           is_preloaded(environ, "vgpreload_memcheck");
}
