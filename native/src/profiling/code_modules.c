/* The code that is loaded: modules, and what /proc/self/maps says. */
#include "profiling/code_modules.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_functions.h"
#include "base/sys.h"

struct search {
    uintptr_t start, end;
    struct code_module *module;
};

/* The program itself has the empty name. A name without a slash is that of the vdso. */
void code_module_path(const struct code_module *module, char path[LT_PROFILE_MODULE])
{
    size_t length = strlen(module->name);
    path[0] = 0;
    if (!length) {
        ssize_t count = readlink("/proc/self/exe", path, LT_PROFILE_MODULE);
        path[count > 0 && count < LT_PROFILE_MODULE ? count : 0] = 0;
    } else if (length < LT_PROFILE_MODULE && strchr(module->name, '/')) {
        memcpy(path, module->name, length + 1);
    }
}

static int has_range(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct search *search = argument;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || search->start < start ||
            search->end > start + segment->p_memsz)
            continue;
        search->module->base = info->dlpi_addr;
        search->module->offset = search->start - start + segment->p_offset;
        search->module->name = info->dlpi_name;
        return 1;
    }
    return 0;
}

bool code_module_of(uintptr_t start, uintptr_t end, struct code_module *module)
{
    struct search search = {start, end, module};
    return dl_iterate_phdr(has_range, &search) == 1;
}

/* ---- /proc/self/maps ---- */

static const char *hexadecimal(const char *text, uintptr_t *value)
{
    for (*value = 0;; text++) {
        unsigned digit = (unsigned char)*text;
        if (digit - '0' < 10)
            digit -= '0';
        else if (digit - 'a' < 6)
            digit -= 'a' - 10;
        else
            return text;
        *value = *value << 4 | digit;
    }
}

/* Moves `start` over a mapping that has it: "55d0-55e0 r-xp ...". */
static void pass_line(const char *line, uintptr_t *start)
{
    uintptr_t from, to;
    const char *rest = hexadecimal(line, &from);
    if (*rest != '-')
        return;
    rest = hexadecimal(rest + 1, &to);
    if (rest[0] == ' ' && rest[3] == 'x' && from <= *start && *start < to)
        *start = to;
}

bool code_is_executable(uintptr_t start, uintptr_t end)
{
    char text[4096 + 1];
    size_t kept = 0;
    long fd =
        sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return false;
    long count;
    while (start < end &&
           (count = sys_call3(SYS_read, fd, (long)(text + kept), (long)(4096 - kept))) > 0) {
        size_t length = kept + (size_t)count;
        text[length] = 0;
        char *line = text, *stop;
        while ((stop = strchr(line, '\n'))) {
            pass_line(line, &start);
            line = stop + 1;
        }
        kept = line == text ? 0 : (size_t)(text + length - line); /* an endless line: dropped */
        memmove(text, line, kept);
    }
    sys_call3(SYS_close, fd, 0, 0);
    return start >= end;
}

/* ---- functions ---- */

struct function_search {
    uint64_t address;     /* in the file */
    const char *name;     /* NULL: the function with `address` */
    uint64_t start, size; /* of what was found; 0: nothing yet */
};

static void compare_function(const struct elf_function *function, void *argument)
{
    struct function_search *search = argument;
    if (function->is_resolver || !function->size || search->size)
        return;
    if (search->name ? !strcmp(search->name, function->name)
                     : search->address - function->start < function->size) {
        search->start = function->start;
        search->size = function->size;
    }
}

static bool function_of(const struct code_module *module, uint64_t address, const char *name,
                        uintptr_t *start, size_t *size)
{
    char path[LT_PROFILE_MODULE];
    struct function_search search = {.address = address, .name = name};
    code_module_path(module, path);
    if (!path[0])
        return false;
    elf_functions_read(path, compare_function, &search);
    if (!search.size)
        return false;
    *start = module->base + search.start;
    *size = search.size;
    return true;
}

bool code_function_at(uintptr_t address, uintptr_t *start, size_t *size)
{
    struct code_module module;
    return code_module_of(address, address + 1, &module) &&
           function_of(&module, address - module.base, NULL, start, size);
}

enum { MODULES_MAX = 256 };

struct module_list {
    unsigned count;
    struct code_module module[MODULES_MAX];
};

static int list_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct module_list *list = argument;
    (void)size;
    if (list->count < MODULES_MAX)
        list->module[list->count++] =
            (struct code_module){.base = info->dlpi_addr, .name = info->dlpi_name};
    return 0;
}

/* The program first, then its libraries in the order in which they were loaded. A library that
 * another thread unloads meanwhile takes its name with it. A program must not do that. */
bool code_function_named(const char *name, uintptr_t *start, size_t *size)
{
    struct module_list list = {.count = 0};
    dl_iterate_phdr(list_module, &list);
    for (unsigned i = 0; i < list.count; i++)
        if (function_of(&list.module[i], 0, name, start, size))
            return true;
    return false;
}
