/* The shared file of this process: how it is made and removed, and the reason why there is none. */
#ifndef LOCKTOP_FILE_H
#define LOCKTOP_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Makes and maps the file of this process in `directory`. On failure returns false, leaves no
 * file behind and puts the reason, for a person, into `reason`. */
bool shm_create(const char *directory, char *reason, size_t reason_size);

/* Removes the name; the mapping stays. */
void shm_remove(void);

/* Leaves the reason as the name of a mapping, where a tool finds it without special rights. */
void shm_leave_reason(const char *reason);

/* The same with a whole name, "locktop: " before the reason. Calls no function of libc. */
void shm_name_mapping(const char *name);

#endif
