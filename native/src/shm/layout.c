/* The layout that abi.h promises to a reader, checked by the compiler. */
#include <stddef.h>

#include "locktop/abi.h"

#define SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)

SIZE(lt_array, 224);
SIZE(lt_header, 2960);
SIZE(lt_control, 40);
SIZE(lt_lock, 64);
SIZE(lt_name, 128);
SIZE(lt_custom, 64);
SIZE(lt_condition, 64);
SIZE(lt_counts, 32);
SIZE(lt_waits, 64);
SIZE(lt_retired, 112);
SIZE(lt_retired_site, 32);
SIZE(lt_lock_counters, 64);
SIZE(lt_site, 32);
SIZE(lt_unloaded_code, 264);
SIZE(lt_held, 64);
SIZE(lt_wait, 48);
SIZE(lt_own, 944);
SIZE(lt_thread, LT_PAGE);
SIZE(lt_histograms, 24);
SIZE(lt_histogram_line, 64);
SIZE(lt_line_sum, 128);
SIZE(lt_stack, 16);
SIZE(lt_long_wait, 80);
SIZE(lt_order, 256);
SIZE(lt_life, 40);
SIZE(lt_call, 64);
SIZE(lt_call_frame, 64);
SIZE(lt_calls, LT_CALLS_SIZE);
SIZE(lt_profile_region, 224);
SIZE(lt_profile, 1936);

_Static_assert(sizeof(struct lt_header) <= LT_CONTROL_OFFSET, "header");
_Static_assert(offsetof(struct lt_thread, held_inline) % 64 == 0, "held list on a cache line");
