/* Looks up the real functions behind the hooks. */
#include "interpose/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

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

static void *lookup(const char *name, const char *version)
{
    void *symbol = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
    return symbol ? symbol : (void *)absent;
}

/* Whether the function is of the same library as one of libc, or is not there at all. */
static bool is_of_libc(const void *function)
{
    Dl_info found, libc;
    return function == (const void *)absent ||
           (dladdr(function, &found) && dladdr((const void *)real__exit, &libc) &&
            found.dli_fbase == libc.dli_fbase);
}

void real_resolve(void)
{
    const char *single = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
    if (single)
        real_single_threaded = single;
#define HOOK(result, name, parameters, arguments) real_##name = lookup(#name, NULL);
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    real_##name##suffix = lookup(#name, version);
#include "interpose/hooks.def"
    real_call_hooks_matter = !is_of_libc((const void *)real___cyg_profile_func_enter);
}

#define HOOK(result, name, parameters, arguments)                                                  \
    static result first_##name parameters                                                          \
    {                                                                                              \
        real_resolve();                                                                            \
        return real_##name arguments;                                                              \
    }
#define HOOK_VERSION(result, name, suffix, version, parameters, arguments)                         \
    static result first_##name##suffix parameters                                                  \
    {                                                                                              \
        real_resolve();                                                                            \
        return real_##name##suffix arguments;                                                      \
    }
#include "interpose/hooks.def"
