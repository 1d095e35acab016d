/* Other tools that check the program as it runs, and that this library might disturb. */
#ifndef LOCKTOP_CHECKERS_H
#define LOCKTOP_CHECKERS_H

#include <stdbool.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* Under ThreadSanitizer. Calls no function of libc that the sanitizer may replace. */
bool is_under_thread_sanitizer(void);

/* Under any tool of Valgrind, which may replace functions of libc in place. */
bool is_under_valgrind(char *const *environ);

/* Under a tool of Valgrind that would report this library's own tables and stacks. */
bool is_under_checker_of_valgrind(char *const *environ);

#pragma GCC visibility pop

#endif
