/* A library with a function that works, for programs that profile the function and close the
 * library.
 */
#include "profiled_work.h"

void plugin_work(unsigned ms)
{
    uint64_t end = cpu_ns() + ms * 1000000ull;
    while (cpu_ns() < end)
        for (int i = 0; i < 100000; i++)
            total_work += (unsigned)i;
}
