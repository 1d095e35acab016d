/* Removes the files of dead processes from the directory. */
#include "shm/stale_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "locktop/abi.h"

/* One directory entry, as getdents64(2) fills it in. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t length;
    uint8_t type;
    char name[];
};

static const char prefix[] = "locktop-";

/* The pid in "locktop-<pid>-<start time>", 0 if the name has another form. */
static uint32_t pid_in_name(const char *name)
{
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return 0;
    uint64_t pid = 0;
    const char *digit = name + sizeof prefix - 1;
    for (; *digit >= '0' && *digit <= '9' && pid < INT32_MAX; digit++)
        pid = pid * 10 + (uint64_t)(*digit - '0');
    return *digit == '-' && pid < INT32_MAX ? (uint32_t)pid : 0;
}

static bool is_dead(uint32_t pid)
{
    return sys_call3(SYS_kill, pid, 0, 0) == -ESRCH;
}

/* The file is of this user, complete, and made in this pid namespace. */
static bool is_ours(long directory, const char *name, uint32_t pid, uint64_t pid_namespace)
{
    struct lt_header header;
    long fd = sys_call6(SYS_openat, directory, (long)name,
                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return false;
    long length = sys_call3(SYS_read, fd, (long)&header, sizeof header);
    sys_call3(SYS_close, fd, 0, 0);
    return length == (long)sizeof header && memcmp(header.magic, "locktop", 8) == 0 &&
           header.pid == pid && header.pid_namespace == pid_namespace && pid_namespace != 0 &&
           header.uid == (uint32_t)sys_call3(SYS_geteuid, 0, 0, 0);
}

void stale_files_remove(const char *directory, uint64_t pid_namespace)
{
    long fd = sys_call6(SYS_openat, AT_FDCWD, (long)directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                        0, 0, 0);
    if (fd < 0)
        return;
    _Alignas(struct entry) char buffer[4096];
    long length;
    while ((length = sys_call3(SYS_getdents64, fd, (long)buffer, sizeof buffer)) > 0)
        for (long offset = 0; offset < length;) {
            const struct entry *entry = (const struct entry *)(buffer + offset);
            uint32_t pid = pid_in_name(entry->name);
            if (pid && is_dead(pid) && is_ours(fd, entry->name, pid, pid_namespace))
                sys_call3(SYS_unlinkat, fd, (long)entry->name, 0);
            offset += entry->length;
        }
    sys_call3(SYS_close, fd, 0, 0);
}
