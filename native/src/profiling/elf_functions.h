/* Functions in the symbol tables of an ELF file. */
#ifndef LOCKTOP_ELF_FUNCTIONS_H
#define LOCKTOP_ELF_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

struct elf_function {
    uint64_t start; /* address in the file */
    uint64_t size;  /* bytes */
};

/* Finds the function that has `address`, or if `name` is not NULL the function of that name. A
 * stripped file still has the functions that it exports. The file is not trusted. */
bool elf_function_find(const char *path, uint64_t address, const char *name,
                       struct elf_function *found);

#pragma GCC visibility pop

#endif
