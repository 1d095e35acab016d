/* The list of the code that dlclose() unloaded. The call sites in the tables of threads carry no
 * flag: only the thread itself may write there. */
#ifndef LOCKTOP_UNLOADED_CODE_H
#define LOCKTOP_UNLOADED_CODE_H

#include <stdint.h>

#include "base/compiler.h"

/* To be called before lt_header.unloads rises: a reader that sees the rise sees the range. */
void unloaded_code_note(uint64_t start, uint64_t end);

#endif
