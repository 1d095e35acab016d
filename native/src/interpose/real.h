/* The real functions behind the hooks: real_<name>. */
#ifndef LOCKTOP_REAL_H
#define LOCKTOP_REAL_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

#define HOOK(result, name, parameters, arguments) extern result(*real_##name) parameters;
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    extern result(*real_##name##suffix) parameters;
#include "interpose/hooks.def"

/* glibc's own note that the process never had a second thread. Then glibc's locks use no atomic
 * operation, but its trylock does. Points to 0 if libc does not have the note. */
extern const char *real_single_threaded;

/* Whether the real functions of calls.c are another profiler's. Those of glibc do nothing. */
extern bool real_call_hooks_matter;

/* Looks up all real functions. The lookup takes the dynamic loader's lock. So it runs once, before
 * the program's own code. A lookup while a hook is at work would deadlock with dlopen. */
void real_resolve(void);

#pragma GCC visibility pop

#endif
