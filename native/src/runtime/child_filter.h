/* The child filter: whether this process is watched if it is the child of a watched process. */
#ifndef LOCKTOP_CHILD_FILTER_H
#define LOCKTOP_CHILD_FILTER_H

#include <stdbool.h>

/* Whether LOCKTOP_CHILDREN, which is `which`, lets a program that begins be watched. `program` is
 * its path or name. Searches the ancestors in /proc only if the answer depends on them. */
bool child_filter_program(const char *which, const char *program, const char *directory);

/* The same for a forked child that goes on in the same program. */
bool child_filter_forks(const char *which, const char *program);

#endif
