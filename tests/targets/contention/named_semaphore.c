/* Waits on a named semaphore that another process posts: this program, called with "post". Then
 * closes the semaphore, opens another one, most likely at the same address, and waits on that.
 */
#include <fcntl.h>
#include <semaphore.h>

#include "../target.h"

static sem_t *opened(const char *name)
{
    sem_t *semaphore = sem_open(name, O_CREAT, 0600, 0);
    must(semaphore == SEM_FAILED ? errno : 0, "sem_open");
    return semaphore;
}

static KEPT void waits(sem_t *semaphore)
{
    char text[80];
    snprintf(text, sizeof text, "{\"tid\": %d, \"address\": \"%p\"}", own_tid(), (void *)semaphore);
    say(text);
    while (sem_wait(semaphore) != 0)
        continue;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 3;
    if (strcmp(argv[1], "post") == 0) {
        must(sem_post(opened(argv[2])) ? errno : 0, "sem_post");
        return 0;
    }
    sem_t *first = opened(argv[1]);
    waits(first);
    sem_close(first);
    waits(opened(argv[2]));
    return verdict();
}
