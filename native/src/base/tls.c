/* The thread-local variable of the library. */
#include "base/tls.h"

__thread struct own lt_own = {.mode = MODE_NEVER};

_Static_assert(sizeof(struct local) <= sizeof(((struct lt_thread *)0)->own),
               "lt_thread.own too small");
