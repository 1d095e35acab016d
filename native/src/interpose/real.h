/* The functions behind the hooks: real_<name>. */
#ifndef LOCKTOP_REAL_H
#define LOCKTOP_REAL_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>

#pragma GCC visibility push(hidden) /* for a direct access: declarations need it said */

#define HOOK(result, name, parameters, arguments) extern result(*real_##name) parameters;
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    extern result(*real_##name##suffix) parameters;
#include "interpose/hooks.def"

/* glibc's own note that the process never had a second thread: then its locks use no atomic
 * operation, which its trylock does not know to save. Points to 0 where libc does not say. */
extern const char *real_single_threaded;

/* Looks all of them up. Takes the dynamic loader's lock, so it runs once, before the program's
 * own code, and never while a hook is at work (a lazy lookup deadlocks with dlopen). */
void real_resolve(void);

#pragma GCC visibility pop

#endif
