/* Names of functions, and the patterns that choose them. */
#ifndef LOCKTOP_FUNCTION_NAME_H
#define LOCKTOP_FUNCTION_NAME_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

enum { FUNCTION_NAME_MAX = 512 };

/* Writes the name as a person reads it, but without types: _ZN2ns1CIiE1fEv is ns::C::f. C++ and
 * Rust's legacy names have components; any other name stays as it is. A suffix that the compiler
 * added (.part.0) is left out. */
void function_name_read(const char *symbol, char *name, size_t size);

/* Whether one of `patterns` fits, which have commas between. "ns::f" is a whole name. "ns::" stands
 * for all names in a namespace or a class. "get*" stands for all names that begin so. */
bool function_name_matches(const char *symbol, const char *patterns);

#pragma GCC visibility pop

#endif
