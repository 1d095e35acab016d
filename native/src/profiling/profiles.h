/* The profiles of this process: what the functions of locktop.h do, and what threads, forks and
 * dlclose() do to profiles. */
#ifndef LOCKTOP_PROFILES_H
#define LOCKTOP_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

struct locktop_profile_totals;

/* The arguments of locktop_profile_create(). */
struct profile_request {
    const void *start;
    size_t size;
    size_t bucket_size;
    int source;
    uint64_t interval;
    int scope;
    const char *name;
};

/* These functions return what those of locktop.h return. */
int profiles_create(const struct profile_request *request);
int profiles_add(int number, const void *start, size_t size);
int profiles_start(int number);
int profiles_stop(int number);
int profiles_read(int number, uint64_t *counts, size_t count,
                  struct locktop_profile_totals *totals);
int profiles_destroy(int number);

/* Makes the table of profiles in the shared memory. */
void profiles_init(void);

/* The number of profiles, and of those that run in all threads. Each hook reads one of them first:
 * nothing else happens in a program that makes no profile. */
extern uint32_t profiles_count;
extern uint32_t profiles_of_all_threads;

/* A thread begins, or its start routine has ended. */
void profiles_thread_begins(void);
void profiles_thread_ends(void);

/* After dlclose(): stops the profiles whose code is gone. */
void profiles_check_code(void);

/* A forked child has no running profile, and its counts begin at 0. */
void profiles_after_fork_in_child(void);

#pragma GCC visibility pop

#endif
