/* A library for waits_in_plugins. WORK is the name of its function, LOCK that of its mutex. */
#include "../target.h"

pthread_mutex_t LOCK = PTHREAD_MUTEX_INITIALIZER;

KEPT void WORK(void)
{
    pthread_mutex_lock(&LOCK);
    pthread_mutex_unlock(&LOCK);
}

void (*plugin_work(void))(void);
void (*plugin_work(void))(void)
{
    return WORK;
}

pthread_mutex_t *plugin_lock(void);
pthread_mutex_t *plugin_lock(void)
{
    return &LOCK;
}
