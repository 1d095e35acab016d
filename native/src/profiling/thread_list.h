/* The threads of this process, as /proc/self/task names them. */
#ifndef LOCKTOP_THREAD_LIST_H
#define LOCKTOP_THREAD_LIST_H

#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

struct thread_list {
    long fd;
    long offset, size; /* bytes of the entries that were read */
    uint64_t entries[256];
};

void thread_list_open(struct thread_list *list);

/* Returns the next tid, 0 at the end. */
uint32_t thread_list_next(struct thread_list *list);

void thread_list_close(struct thread_list *list);

#pragma GCC visibility pop

#endif
