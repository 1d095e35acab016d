/* The control page, which holds the mode. */
#include "base/modes.h"

union control_page lt_control __attribute__((aligned(LT_PAGE)));
