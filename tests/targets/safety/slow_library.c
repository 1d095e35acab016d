/* A library whose constructor waits for a byte of the pipe SLOW_START. With -z initfirst it runs
 * before all others, and before getenv() works. So a program with this library starts slowly.
 */
#include <fcntl.h>

#include "../target.h"

static __attribute__((constructor)) void wait_for_byte(int count, char **arguments,
                                                       char **variables)
{
    static const char name[] = "SLOW_START=";
    (void)count, (void)arguments;
    while (*variables && strncmp(*variables, name, sizeof name - 1) != 0)
        variables++;
    char byte;
    int pipe = *variables ? open(*variables + sizeof name - 1, O_RDONLY) : -1;
    if (pipe < 0 || read(pipe, &byte, 1) != 1)
        _exit(4);
    close(pipe);
}
