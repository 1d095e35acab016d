/* The hook of dlclose(). The library must not confuse recorded addresses of unloaded code with the
 * code that the loader puts there next. */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

#include "base/tls.h"
#include "calls/call_filter.h"
#include "calls/call_stack.h"
#include "interpose/real.h"
#include "profiling/profiles.h"
#include "tables/stack_table.h"
#include "tables/unloaded_code.h"

/* The code of the modules loaded last: those that the program may unload. */
enum { MODULES_MAX = 128 };
struct modules {
    unsigned count;
    struct code {
        uintptr_t start, end;
    } code[MODULES_MAX];
};

static struct code code_of(const struct dl_phdr_info *info)
{
    struct code code = {UINTPTR_MAX, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        code.start = start < code.start ? start : code.start;
        code.end = start + segment->p_memsz > code.end ? start + segment->p_memsz : code.end;
    }
    return code;
}

static int add(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct modules *modules = argument;
    (void)size;
    modules->code[modules->count++ % MODULES_MAX] = code_of(info);
    return 0;
}

static unsigned module_count(const struct modules *modules)
{
    return modules->count < MODULES_MAX ? modules->count : MODULES_MAX;
}

static int take_away(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct modules *modules = argument;
    struct code still = code_of(info);
    (void)size;
    for (unsigned i = 0; i < module_count(modules); i++)
        if (modules->code[i].start == still.start && modules->code[i].end == still.end)
            modules->code[i].end = 0;
    return 0;
}

static NOINLINE int close_watched(struct lt_thread *t, void *handle)
{
    struct modules modules;
    modules.count = 0;
    dl_iterate_phdr(add, &modules);
    int result = real_dlclose(handle);
    dl_iterate_phdr(take_away, &modules);
    for (unsigned i = 0; i < module_count(&modules) && watched() == t; i++)
        if (modules.code[i].end) {
            unloaded_code_note(modules.code[i].start, modules.code[i].end);
            stack_table_unloaded(modules.code[i].start, modules.code[i].end);
            calls_unloaded(modules.code[i].start, modules.code[i].end);
            call_filter_unloaded(modules.code[i].start, modules.code[i].end);
        }
    return result;
}

/* dlclose() itself takes the loader's lock. So reading the loader's list takes no lock that the
 * program does not take anyway. */
EXPORT int dlclose(void *handle)
{
    struct lt_thread *t = watched();
    int result = t ? close_watched(t, handle) : real_dlclose(handle);
    if (UNLIKELY(profiles_count))
        profiles_check_code();
    return result;
}
