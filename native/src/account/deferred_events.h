/* Deferred events: the library does not write the record of a contended wait while the program
 * holds the lock. The library writes the record after the release of the lock that the thread took
 * last. */
#ifndef LOCKTOP_DEFERRED_EVENTS_H
#define LOCKTOP_DEFERRED_EVENTS_H

#include "base/tls.h"

/* Adds the wait to the thread's waits by stack, and writes the record. */
void event_write(struct lt_thread *t, const struct lock_event *event);

/* Writes the event now if the thread holds no lock. Else the release of the thread's last lock
 * writes the event. */
void event_defer(struct lt_thread *t, const struct lock_event *event);
void events_flush(struct lt_thread *t);

#endif
