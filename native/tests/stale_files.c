/* Tests of stale files: only the files of this user's dead processes are removed. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "locktop/abi.h"
#include "shm/stale_files.h"

static char directory[] = "/dev/shm/locktop-test-XXXXXX";

static uint32_t dead_pid(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    CHECK(waitpid(pid, NULL, 0) == pid);
    return (uint32_t)pid;
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void make(const char *name, const struct lt_header *header, size_t size)
{
    int fd = open(path_of(name), O_CREAT | O_EXCL | O_WRONLY, 0600);
    CHECK(fd >= 0 && write(fd, header, size) == (ssize_t)size && close(fd) == 0);
}

static bool is_there(const char *name)
{
    struct stat status;
    return lstat(path_of(name), &status) == 0;
}

static struct lt_header header_of(uint32_t pid, uint64_t pid_namespace)
{
    struct lt_header header;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, "locktop", 8);
    header.pid = pid;
    header.uid = (uint32_t)geteuid();
    header.pid_namespace = pid_namespace;
    return header;
}

int main(void)
{
    CHECK(mkdtemp(directory));
    uint32_t dead = dead_pid();
    char gone[64], elsewhere[64], foreign[64], short_one[64], living[64], link[64];
    snprintf(gone, sizeof gone, "locktop-%u-100", dead);
    snprintf(elsewhere, sizeof elsewhere, "locktop-%u-101", dead);
    snprintf(foreign, sizeof foreign, "locktop-%u-102", dead);
    snprintf(short_one, sizeof short_one, "locktop-%u-103", dead);
    snprintf(link, sizeof link, "locktop-%u-104", dead);
    snprintf(living, sizeof living, "locktop-%d-100", getpid());

    struct lt_header header = header_of(dead, 42);
    make(gone, &header, sizeof header);
    make("another-file", &header, sizeof header);
    make(short_one, &header, 20);
    header.pid_namespace = 43;
    make(elsewhere, &header, sizeof header);
    header = header_of(dead, 42);
    header.magic[0] = 'X';
    make(foreign, &header, sizeof header);
    header = header_of((uint32_t)getpid(), 42);
    make(living, &header, sizeof header);
    CHECK(symlink("another-file", path_of(link)) == 0);

    stale_files_remove(directory, 42);
    CHECK(!is_there(gone));
    const char *left[] = {elsewhere, foreign, short_one, living, link, "another-file"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        CHECK(is_there(left[i]));
        unlink(path_of(left[i]));
    }
    stale_files_remove("/nowhere/at/all", 42);
    CHECK(rmdir(directory) == 0);
    return 0;
}
