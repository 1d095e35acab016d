/* A library for semaphore_units_by_function. TAKE is the name of its function. */
#include <semaphore.h>

#include "../target.h"

KEPT void TAKE(sem_t *units)
{
    sem_wait(units);
}

void (*plugin_take(void))(sem_t *);
void (*plugin_take(void))(sem_t *)
{
    return TAKE;
}
