/* The raw system call makes a child, so no fork handler runs. The child takes many new locks; then
 * the parent does the same. Both processes must survive.
 */
#include <signal.h>
#include <sys/wait.h>

#include "../target.h"

enum { LOCKS = 5000 };
static pthread_mutex_t table[LOCKS];

static void take_all(int from)
{
    for (int i = from; i < LOCKS; i++) {
        must(pthread_mutex_lock(&table[i]), "lock");
        must(pthread_mutex_unlock(&table[i]), "unlock");
    }
}

int main(void)
{
    int status;
    must(pthread_mutex_lock(&table[0]), "lock");
    must(pthread_mutex_unlock(&table[0]), "unlock");
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
    if (child == 0) {
        take_all(1);
        _exit(0);
    }
    check_equal("waitpid", waitpid(child, &status, 0), child);
    check_equal("the child's status", status, 0);
    take_all(0);
    return verdict();
}
