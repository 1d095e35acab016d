/* How much memory a msgpack value of a stranger would take as Python objects. */
#ifndef LOCKTOP_UNPACKED_MEMORY_H
#define LOCKTOP_UNPACKED_MEMORY_H

#include <stdint.h>

/* Returns an estimate in bytes for the first value of `data`, UINT64_MAX if it is cut off or no
 * msgpack. The count ends at the first estimate above `most`, which is returned. */
uint64_t lt_unpacked_memory(const uint8_t *data, uint64_t size, uint64_t most);

#endif
