/* Stale files: the files of processes that were killed before they could remove them. */
#ifndef LOCKTOP_STALE_FILES_H
#define LOCKTOP_STALE_FILES_H

#include <stdint.h>

/* Removes from `directory` the files of this user's dead processes. A service that crashes in a
 * loop must not fill the memory behind /dev/shm. `pid_namespace` is the caller's namespace. A file
 * from another namespace stays, for its pid means nothing here. */
void stale_files_remove(const char *directory, uint64_t pid_namespace);

#endif
