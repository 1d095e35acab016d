/* The flight recorder: one ring for each thread, written over and over, never read here. */
#ifndef LOCKTOP_RECORD_H
#define LOCKTOP_RECORD_H

#include <stdint.h>

#include "base/tls.h"

/* Encodes one record into LT_RECORD_SIZE bytes; the layout is drawn in abi.h. */
void event_encode(uint8_t *to, uint32_t tid, const struct lock_event *event);

/* The same of a mark; `text` ends with a zero. */
void mark_encode(uint8_t *to, uint32_t tid, uint64_t now, const char *text);

/* Appends to the thread's ring, which is made at the first record. */
void ring_write(struct lt_thread *t, const struct lock_event *event);
void ring_write_mark(struct lt_thread *t, uint64_t now, const char *text);

#endif
