/* The thread-local variable of the captures. */
#include "stack/stack_state.h"

__thread uint32_t stack_registering;
