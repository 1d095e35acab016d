/* The functions behind the hooks: real_<name>. */
#ifndef LOCKTOP_REAL_H
#define LOCKTOP_REAL_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>
#include <time.h>

#define HOOK(result, name, parameters, arguments) extern result(*real_##name) parameters;
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments) \
    extern result(*real_##name##suffix) parameters;
#include "hooks.def"
#undef HOOK
#undef HOOK_VERSION

/* Looks all of them up. Takes the dynamic loader's lock, so it runs once, before the program's
 * own code, and never while a hook is at work (a lazy lookup deadlocks with dlopen). */
void real_resolve(void);

#endif
