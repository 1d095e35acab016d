/* Finds the definition of a symbol that the program would use without this library. */
#ifndef LOCKTOP_NEXT_DEFINITION_H
#define LOCKTOP_NEXT_DEFINITION_H

#pragma GCC visibility push(hidden) /* the declarations must say so: then access is direct */

/* Returns the first definition behind this library that has this version, or no version. The loader
 * would bind the program's reference to it. dlvsym() alone passes over a definition without a
 * version. The newest version is the one that dlsym() finds in libc. Returns NULL if there is no
 * such definition. */
void *next_definition(const char *name, const char *version, const char *newest);

#pragma GCC visibility pop

#endif
