/* The names that the program gives to its locks. */
#ifndef LOCKTOP_LOCK_NAMES_H
#define LOCKTOP_LOCK_NAMES_H

#include <stdint.h>

/* Makes the table. Its memory comes with the first name. */
void lock_names_init(void);

/* Names a lock. `key`: the lock's address, or the lock's key if the name is for one kind of lock
 * only. The table copies at most LT_NAME_TEXT - 1 bytes of the text; an empty text ends the
 * name. */
void lock_name_set(uint64_t key, const char *text);

/* Ends the lock's names, both the one by key and the one by address. */
void lock_name_forget(uint64_t key);

#endif
