/* The life of the process: the watch begins, the process forks, the process ends. */
#ifndef LOCKTOP_PROCESS_H
#define LOCKTOP_PROCESS_H

#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* Reads the settings and begins the watch, unless the settings leave this process out. `read_tid`:
 * as in threads_init(). */
void process_start(char *const *environ, uint32_t (*read_tid)(void));

/* Around a fork, in the thread that forks. */
void process_before_fork(void);
void process_after_fork(void);
void process_after_fork_in_child(void);

/* A forked child's first hook: gives the child a file of its own. */
void process_start_child(void);

/* The process exits. */
void process_end(void);

#pragma GCC visibility pop

#endif
