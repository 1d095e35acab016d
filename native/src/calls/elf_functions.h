/* The functions that the symbol table of an ELF file names. */
#ifndef LOCKTOP_ELF_FUNCTIONS_H
#define LOCKTOP_ELF_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* Calls `found` with the name and the address in memory of each function. The file is loaded at
 * `load_address`. False if the file cannot be read, or if it names only the functions that it
 * exports. */
bool elf_functions_read(const char *path, uint64_t load_address,
                        void (*found)(const char *name, uint64_t address, void *argument),
                        void *argument);

#pragma GCC visibility pop

#endif
