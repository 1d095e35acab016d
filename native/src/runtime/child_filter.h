/* Whether this process is to be watched, being the child of one that is. */
#ifndef LOCKTOP_CHILDREN_H
#define LOCKTOP_CHILDREN_H

#include <stdbool.h>

/* By LOCKTOP_CHILDREN, for a program that begins; `program` is its path or name. Asks /proc for its
 * ancestors only where that matters. */
bool child_filter_program(const char *which, const char *program, const char *directory);

/* The same for a child that was forked, and runs on in the same program. */
bool child_filter_forks(const char *which, const char *program);

#endif
