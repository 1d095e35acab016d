/* The details of a contended wait, which may not be written while a lock of the program is held. */
#ifndef LOCKTOP_DETAIL_H
#define LOCKTOP_DETAIL_H

#include "base/tls.h"

/* Counts where it came from and writes the record. */
void event_write(struct lt_thread *t, const struct lock_event *event);

/* The same at the release of a lock that is held now: not while the program's lock is held. */
void event_defer(struct lt_thread *t, const struct lock_event *event);
void events_flush(struct lt_thread *t);

#endif
