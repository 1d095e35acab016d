/* The C part of python_gil_and_state_lock.py: a lock that is taken with and without the GIL. */
#include <pthread.h>

/* Of Python's C API (cpython, Include/pystate.h), so that its headers need not be there. */
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
void PySys_WriteStderr(const char *format, ...);

static pthread_mutex_t g_state_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int is_loading, is_rendering;
static int g_state;

static __attribute__((noinline)) void log_line(const char *line)
{
    int state = PyGILState_Ensure();
    PySys_WriteStderr("%s\n", line);
    PyGILState_Release(state);
}

/* Called without the GIL. */
int state_load(void)
{
    pthread_mutex_lock(&g_state_lock);
    is_loading = 1;
    while (!is_rendering)
        ;
    log_line("loaded");
    g_state++;
    pthread_mutex_unlock(&g_state_lock);
    return g_state;
}

/* Called with the GIL. */
int state_add(void)
{
    while (!is_loading)
        ;
    is_rendering = 1;
    pthread_mutex_lock(&g_state_lock);
    g_state++;
    pthread_mutex_unlock(&g_state_lock);
    return g_state;
}
