/* Looks up the real functions behind the hooks. */
#include "interpose/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "interpose/next_definition.h"

/* Before real_resolve() each pointer leads to a stand-in that resolves the functions and then calls
 * on. */
#define HOOK(result, name, parameters, arguments)                                                  \
    static result first_##name parameters;                                                         \
    result(*real_##name) parameters = first_##name;
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    static result first_##name##suffix parameters;                                                 \
    result(*real_##name##suffix) parameters = first_##name##suffix;
#include "interpose/hooks.def"

static const char unknown;
const char *real_single_threaded = &unknown;
bool real_call_hooks_matter;

/* The answer of a libc that does not have the function. */
static int absent(void)
{
    return ENOSYS;
}

/* Before glibc 2.34, dlsym() itself calls pthread_once(), and malloc for its error message. So the
 * thread that looks up the functions calls hooks that have no real function yet. Volatile: dlfcn.h
 * tells the compiler that dlsym() never calls back. */
static __thread volatile bool is_looking_up;

/* Works as pthread_once() in a process with one thread. The value 2 says "done" to glibc. */
static int once_while_looking_up(pthread_once_t *control, void (*init)(void))
{
    if (*control == PTHREAD_ONCE_INIT) {
        init();
        *control |= 2;
    }
    return 0;
}

/* Says that a lock was taken or released. The lookup comes before the program has a second thread.
 * A lookup releases each lock that it takes. The std::mutex of a malloc() would throw an error. */
static int locked(void)
{
    return 0;
}

static bool is_of_lock(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && !strcmp(name + length - 4, "lock");
}

/* Returns the function that a hook calls while its thread looks up the functions. No lock is made:
 * an allocator then gives up, and tries again later. */
static void *stand_in(const char *name)
{
    if (!strcmp(name, "pthread_once"))
        return (void *)once_while_looking_up;
    return is_of_lock(name) ? (void *)locked : (void *)absent;
}

static void *lookup(const char *name, const char *version)
{
    void *symbol = version ? next_definition(name, version, LT_COND_NEW) : dlsym(RTLD_NEXT, name);
    return symbol ? symbol : (void *)absent;
}

/* Whether the function is of the same library as one of libc, or is not there at all. */
static bool is_of_libc(const void *function)
{
    Dl_info info, libc;
    return function == (const void *)absent ||
           (dladdr(function, &info) && dladdr((const void *)real__exit, &libc) &&
            info.dli_fbase == libc.dli_fbase);
}

/* All real functions, under their own names. */
struct functions {
#define HOOK(result, name, parameters, arguments) result(*name) parameters;
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    result(*name##suffix) parameters;
#include "interpose/hooks.def"
};

void real_resolve(void)
{
    if (is_looking_up)
        return;
    is_looking_up = true;
    const char *single = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
    if (single)
        real_single_threaded = single;
    /* No pointer changes before the last lookup: a lookup must not release a lock that it did not
     * take. */
    struct functions definitions;
#define HOOK(result, name, parameters, arguments) definitions.name = lookup(#name, NULL);
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    definitions.name##suffix = lookup(#name, version);
#include "interpose/hooks.def"
#define HOOK(result, name, parameters, arguments) real_##name = definitions.name;
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    real_##name##suffix = definitions.name##suffix;
#include "interpose/hooks.def"
    is_looking_up = false;
    real_call_hooks_matter = !is_of_libc((const void *)real___cyg_profile_func_enter);
}

#define HOOK(result, name, parameters, arguments)                                                  \
    static result first_##name parameters                                                          \
    {                                                                                              \
        if (is_looking_up)                                                                         \
            return ((result(*) parameters)stand_in(#name))arguments;                               \
        real_resolve();                                                                            \
        return real_##name arguments;                                                              \
    }
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    static result first_##name##suffix parameters                                                  \
    {                                                                                              \
        if (is_looking_up)                                                                         \
            return ((result(*) parameters)stand_in(#name))arguments;                               \
        real_resolve();                                                                            \
        return real_##name##suffix arguments;                                                      \
    }
#include "interpose/hooks.def"
