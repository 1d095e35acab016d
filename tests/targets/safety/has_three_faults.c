/* One fault for each sanitizer. Two threads write a variable without a lock. The program writes a
 * byte behind an allocation. A signed number overflows.
 */
#include <limits.h>

#include "../target.h"

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int racing, number = INT_MAX;

static void *write_without_lock(void *argument)
{
    racing++;
    pthread_mutex_lock(&g_lock);
    pthread_mutex_unlock(&g_lock);
    return argument;
}

int main(void)
{
    pthread_t other = start(write_without_lock, NULL, NULL);
    write_without_lock(NULL);
    pthread_join(other, NULL);
    number = number + 1;
    volatile char *bytes = malloc(8);
    volatile int behind = 8;
    bytes[behind] = 1;
    free((void *)bytes);
    return verdict();
}
