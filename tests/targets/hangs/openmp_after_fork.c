/* A process forks after a parallel region, and its child begins another one. The child waits for
 * the threads of the team, which stayed in the parent. The child's pid is the first line. */
#include <sys/wait.h>

#include "../target.h"

static KEPT double score_batch(int count)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(4)
    for (int number = 0; number < count; number++)
        sum += number * 0.5;
    return sum;
}

int main(void)
{
    char line[32];
    double before = score_batch(1000);
    pid_t child = fork();
    if (child == 0)
        _exit(score_batch(1000) == before);
    snprintf(line, sizeof line, "%d", child);
    say(line);
    waitpid(child, NULL, 0);
}
