/* The thread-local variable of the library. */
#include "base/tls.h"

__thread struct own lt_own = {.mode = MODE_NEVER};

static struct lt_thread *no_block(uint32_t mode)
{
    (void)mode;
    return NULL;
}

struct lt_thread *(*lt_enter)(uint32_t mode) = no_block;
