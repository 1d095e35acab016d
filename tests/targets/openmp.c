/* A team of OpenMP threads: its own two barriers are futex calls compiled into libgomp, which no
 * preloaded library sees. Says {"main": tid} when all others wait at a barrier for the first thread,
 * which waits for a line on stdin.
 */
#include <omp.h>

#include "target.h"

enum { THREADS = 3 };

static int arrived;

int main(void)
{
    omp_set_num_threads(THREADS);
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0) {
            while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < THREADS - 1)
                pause_ms(1);
            char text[40];
            snprintf(text, sizeof text, "{\"main\": %d}", own_tid());
            say(text);
            hear();
        } else {
            __atomic_fetch_add(&arrived, 1, __ATOMIC_RELEASE);
        }
#pragma omp barrier
    }
    say("done");
    return 0;
}
