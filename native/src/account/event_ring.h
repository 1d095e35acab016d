/* The event ring: each thread writes its last events over and over; the library never reads
 * them. */
#ifndef LOCKTOP_EVENT_RING_H
#define LOCKTOP_EVENT_RING_H

#include <stdint.h>

#include "account/lock_event.h"
#include "locktop/abi.h"

/* Encodes one event into LT_RECORD_SIZE bytes; abi.h draws the layout. */
void event_encode(uint8_t *to, uint32_t tid, const struct lock_event *event);

/* The same for a mark of the user; `text` ends with a zero. */
void mark_encode(uint8_t *to, uint32_t tid, uint64_t now, const char *text);

/* Appends to the thread's ring, which the first record makes. */
void ring_write(struct lt_thread *t, const struct lock_event *event);
void ring_write_mark(struct lt_thread *t, uint64_t now, const char *text);

#endif
