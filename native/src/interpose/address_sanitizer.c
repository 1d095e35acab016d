/* Lets a program with AddressSanitizer's shared runtime start.
 *
 * The runtime ends a program if another library comes before it: that library's functions might
 * hide its own. This library's hooks call the runtime's, as next definitions. The runtime asks this
 * function for its options before it looks. A function of that name in the program comes first. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/modes.h"

const char *__asan_default_options(void);

static const struct link_map *object_of(const void *address)
{
    Dl_info info;
    void *object = NULL;
    return dladdr1(address, &info, &object, RTLD_DL_LINKMAP) ? object : NULL;
}

/* The functions of string.h are the runtime's own by now, and not ready. */
static bool begins_with(const char *text, const char *begin)
{
    while (*begin && *text == *begin)
        text++, begin++;
    return !*begin;
}

/* Whether the runtime would be the first library without this one. */
static bool is_first_but_for_us(const struct link_map *runtime)
{
    const struct link_map *ours = object_of(&lt_control);
    if (!runtime || !ours || ours->l_next != runtime)
        return false;
    for (const struct link_map *before = ours->l_prev; before; before = before->l_prev)
        if (before->l_name[0] && !begins_with(before->l_name, "linux-vdso."))
            return false; /* neither the program nor the kernel's part */
    return true;
}

EXPORT const char *__asan_default_options(void)
{
    if (is_first_but_for_us(object_of(__builtin_return_address(0))))
        return "verify_asan_link_order=0";
    const char *(*next)(void) = (const char *(*)(void))dlsym(RTLD_NEXT, "__asan_default_options");
    return next ? next() : "";
}
