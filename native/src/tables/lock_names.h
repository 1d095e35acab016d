/* What the program calls its locks. */
#ifndef LOCKTOP_NAMES_H
#define LOCKTOP_NAMES_H

#include <stdint.h>

/* The tables are made with the first name. */
void lock_names_init(void);

/* `key`: the lock's address, or its key for a name that is of one kind of lock only. The text is
 * copied, at most LT_NAME_TEXT - 1 bytes of it. */
void lock_name_set(uint64_t key, const char *text);

/* The lock has no name any more, neither by its key nor by its address. */
void lock_name_forget(uint64_t key);

#endif
