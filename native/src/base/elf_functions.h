/* The functions that the symbol table of an ELF file names. */
#ifndef LOCKTOP_ELF_FUNCTIONS_H
#define LOCKTOP_ELF_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

struct elf_function {
    const char *name;
    uint64_t start;   /* address in the file */
    uint64_t size;    /* bytes */
    bool is_resolver; /* the code chooses the function of that name (STT_GNU_IFUNC) */
};

typedef void elf_function_use(const struct elf_function *function, void *argument);

/* Calls `use` with each function. A stripped file still has the functions that it exports. The file
 * is not trusted. False if the file cannot be read, or if it names only what it exports. */
bool elf_functions_read(const char *path, elf_function_use *use, void *argument);

#pragma GCC visibility pop

#endif
