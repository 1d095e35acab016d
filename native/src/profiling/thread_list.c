/* Reads /proc/self/task without libc, which would allocate. */
#include "profiling/thread_list.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/sys.h"

void thread_list_open(struct thread_list *list)
{
    list->offset = list->size = 0;
    list->fd = sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/task",
                         O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
}

/* struct dirent64 is what the kernel writes. The names "." and ".." are no numbers. */
uint32_t thread_list_next(struct thread_list *list)
{
    for (;;) {
        if (list->offset >= list->size) {
            list->size = list->fd < 0 ? 0
                                      : sys_call3(SYS_getdents64, list->fd, (long)list->entries,
                                                  sizeof list->entries);
            list->offset = 0;
            if (list->size <= 0)
                return 0;
        }
        const struct dirent64 *entry = (const void *)((const char *)list->entries + list->offset);
        list->offset += entry->d_reclen;
        uint32_t tid = 0;
        for (const char *digit = entry->d_name; *digit >= '0' && *digit <= '9'; digit++)
            tid = tid * 10 + (uint32_t)(*digit - '0');
        if (tid)
            return tid;
    }
}

void thread_list_close(struct thread_list *list)
{
    if (list->fd >= 0)
        sys_call3(SYS_close, list->fd, 0, 0);
}
