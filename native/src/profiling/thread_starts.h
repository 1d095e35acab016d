/* The start routines of threads that the library does not watch. Such a thread is profiled, too: a
 * function of the library runs before the thread's own start routine. */
#ifndef LOCKTOP_THREAD_STARTS_H
#define LOCKTOP_THREAD_STARTS_H

#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

struct profiled_start {
    void *(*start)(void *);
    void *argument;
    uint32_t is_used;
};

/* Keeps a start routine and its argument; NULL if there is no room: the thread is not profiled. */
struct profiled_start *thread_start_keep(void *(*start)(void *), void *argument);

/* Returns what was kept, and gives the room back. */
struct profiled_start thread_start_take(struct profiled_start *kept);

/* Forgets all, in a forked child. */
void thread_starts_forget(void);

#pragma GCC visibility pop

#endif
