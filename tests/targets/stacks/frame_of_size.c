/* A library whose function sleeps in a frame of SIZE bytes, until the function reads a byte. */
#include <string.h>
#include <unistd.h>

int sized(int fd);

int sized(int fd)
{
    char some[SIZE];
    memset(some, fd, sizeof some);
    return (int)read(fd, some, 1) + some[fd];
}
