/* Misuse: calls that pthreads does not allow, noted once for each lock and call site. */
#ifndef LOCKTOP_MISUSE_H
#define LOCKTOP_MISUSE_H

#include <stdbool.h>

#include "base/compiler.h"
#include "locktop/abi.h"

void misuses_init(void);

/* Notes a misuse. `frame`: FRAME() of the hook, for the stack; `other`: see struct lt_misuse. */
NOINLINE void misuse_note(struct lt_thread *t, enum lt_misuse_kind kind, uint64_t key,
                          uint32_t other, const uintptr_t *frame);

/* Whether a dead thread still lists locks that it never released. */
bool misuse_has_kept(struct lt_thread *dead);

/* Notes these locks. One caller at a time. */
void misuse_note_kept(struct lt_thread *dead);

#endif
