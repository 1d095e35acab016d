/* Deferred events: the library does not write the record of a contended wait while the program
 * holds the lock. The library writes the record after the release of the lock that the thread took
 * last. */
#ifndef LOCKTOP_DEFERRED_EVENTS_H
#define LOCKTOP_DEFERRED_EVENTS_H

#include "account/lock_event.h"
#include "locktop/abi.h"

/* Adds the wait to the thread's waits by stack, and writes the record. */
void event_write(struct lt_thread *t, const struct lock_event *event);

/* Writes the event now if the thread holds no lock. Else the release of the thread's last lock
 * writes the event. */
void event_defer(struct lt_thread *t, const struct lock_event *event);
void events_flush(struct lt_thread *t);

/* Drops the deferred events: the thread ended, or the watch of its locks begins anew. */
void events_forget(struct lt_thread *t);

#endif
