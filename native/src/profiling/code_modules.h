/* The code that is loaded: which module has an address, and where the functions of a module lie. */
#ifndef LOCKTOP_CODE_MODULES_H
#define LOCKTOP_CODE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "locktop/abi.h"

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

struct code_module {
    uintptr_t base;   /* what the loader adds to the addresses of the file */
    uint64_t offset;  /* of the start of the range in the file */
    const char *name; /* as the loader has it, as long as the module is loaded */
};

/* Finds the module whose executable segment has all of [start, end). These functions take the
 * loader's lock. */
bool code_module_of(uintptr_t start, uintptr_t end, struct code_module *module);

/* Writes the path of a module; empty if there is none, or if the path is too long. */
void code_module_path(const struct code_module *module, char path[LT_PROFILE_MODULE]);

/* Whether all of [start, end) is mapped executable, as /proc/self/maps says. */
bool code_is_executable(uintptr_t start, uintptr_t end);

/* Finds the function that has an address, or that has a name, by the symbol tables of the files. */
bool code_function_at(uintptr_t address, uintptr_t *start, size_t *size);
bool code_function_named(const char *name, uintptr_t *start, size_t *size);

#pragma GCC visibility pop

#endif
