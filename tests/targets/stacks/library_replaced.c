/* Sleeps in a function of a library, and then in a function of another library at the same address:
 * `library_replaced FIRST SECOND`. Says {"tid": ..., "function": its address} each time, and
 * continues at a line.
 */
#include <dlfcn.h>

#include "../target.h"

static int ends[2];
static int (*function)(int);

static void *sleeper(void *argument)
{
    char said[100];
    snprintf(said, sizeof said, "{\"tid\": %d, \"function\": %llu}", own_tid(),
             (unsigned long long)(uintptr_t)function);
    __atomic_store_n((char **)argument, strdup(said), __ATOMIC_RELEASE);
    return function(ends[0]) ? NULL : argument;
}

static void sleep_in(const char *path)
{
    char *said = NULL, line[16];
    void *library = dlopen(path, RTLD_NOW);
    pthread_t thread;

    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    must(library ? 0 : EINVAL, "dlopen");
    *(void **)&function = dlsym(library, "sized");
    must(pthread_create(&thread, NULL, sleeper, &said), "create");
    while (!__atomic_load_n(&said, __ATOMIC_ACQUIRE) || !is_asleep(atoi(strchr(said, ':') + 1)))
        pause_ms(1);
    say(said);
    if (!fgets(line, sizeof line, stdin))
        exit(0);
    must(write(ends[1], "x", 1) == 1 ? 0 : EIO, "write");
    must(pthread_join(thread, NULL), "join");
    free(said);
    dlclose(library);
}

int main(int count, char **words)
{
    must(pipe(ends), "pipe");
    for (int i = 1; i < count; i++)
        sleep_in(words[i]);
    return 0;
}
