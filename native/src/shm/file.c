/* Makes the shared file of this process: its name, its header and its first mapping. */
#include "shm/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/sys.h"
#include "shm/arena.h"
#include "shm/segment.h"

/* Growing a file past RLIMIT_FSIZE raises SIGXFSZ, which would kill the program. */
static uint64_t largest_file(void)
{
    uint64_t largest = shm_segment_start(SHM_SEGMENTS);
    struct rlimit limit;
    if (sys_call6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
        limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < largest)
        largest = limit.rlim_cur;
    if (lt_settings.memory && lt_settings.memory < largest)
        largest = lt_settings.memory;
    return largest;
}

/* Field 22 of /proc/self/stat (proc_pid_stat(5)). The second field, the program's name, may hold
 * anything, so counting starts after the last closing parenthesis. */
static uint64_t process_start_time(void)
{
    char text[1024];
    long fd =
        sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/stat", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return 0;
    long length = sys_call3(SYS_read, fd, (long)text, sizeof text - 1);
    sys_call3(SYS_close, fd, 0, 0);
    if (length <= 0)
        return 0;
    text[length] = 0;
    const char *rest = strrchr(text, ')');
    for (int field = 2; rest && field < 22; field++)
        rest = strchr(rest + 1, ' ');
    uint64_t value = 0;
    if (rest)
        for (rest++; *rest >= '0' && *rest <= '9'; rest++)
            value = value * 10 + (uint64_t)(*rest - '0');
    return value;
}

/* "pid:[4026531836]" -> 4026531836 */
static uint64_t pid_namespace(void)
{
    char text[64];
    long length = sys_call6(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)text,
                            sizeof text - 1, 0, 0);
    uint64_t value = 0;
    for (long i = 0; i < length; i++)
        if (text[i] >= '0' && text[i] <= '9')
            value = value * 10 + (uint64_t)(text[i] - '0');
    return value;
}

static uint32_t user_id(void)
{
    return (uint32_t)sys_call3(SYS_geteuid, 0, 0, 0);
}

static long create_exclusively(void)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    return sys_call6(SYS_openat, AT_FDCWD, (long)shm_path, flags, 0600, 0, 0);
}

/* Processes in containers that share the directory may have the same pid and start time. */
static bool is_of_another_namespace(void)
{
    uint64_t theirs = 0;
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    long fd = sys_call6(SYS_openat, AT_FDCWD, (long)shm_path, flags, 0, 0, 0);
    if (fd < 0)
        return false;
    sys_call6(SYS_pread64, fd, (long)&theirs, sizeof theirs,
              offsetof(struct lt_header, pid_namespace), 0, 0);
    sys_call3(SYS_close, fd, 0, 0);
    return theirs && theirs != pid_namespace();
}

static long open_new(void)
{
    long fd = create_exclusively();
    if (fd != -EEXIST)
        return fd;
    /* Same pid, same start time: the file is of this process, from before it called exec. */
    if (!is_of_another_namespace()) {
        shm_remove();
        fd = create_exclusively();
        if (fd != -EEXIST)
            return fd;
    }
    /* Or the process had another user id then, and may not remove that user's file. */
    size_t length = strlen(shm_path);
    snprintf(shm_path + length, sizeof shm_path - length, "-%u", user_id());
    shm_remove();
    return create_exclusively();
}

/* strerror() may allocate and translate; these errors are the ones that happen. */
static const char *error_text(long error)
{
    switch (-error) {
    case ENOSPC: return "no space left";
    case ENOENT: return "no such directory";
    case ENOTDIR: return "not a directory";
    case EACCES: return "permission denied";
    case EPERM: return "not permitted";
    case EROFS: return "read-only file system";
    case ENOMEM: return "no memory or address space";
    case EMFILE:
    case ENFILE: return "too many open files";
    case EFBIG: return "file size limit (ulimit -f)";
    case EDQUOT: return "disk quota";
    default: return "error";
    }
}

static bool failed(const char *what, const char *where, long error, char *reason, size_t size)
{
    snprintf(reason, size, "%s %s: %s (errno %ld)", what, where, error_text(error), -error);
    return false;
}

static void fill_header(struct lt_header *header, uint64_t start_time, uint64_t limit)
{
    header->version = LT_ABI_VERSION;
    header->byte_order = LT_BYTE_ORDER;
    header->word_bits = 8 * sizeof(void *);
    header->header_size = sizeof *header;
    header->pid = sys_getpid();
    header->uid = user_id();
    header->start_time = start_time;
    header->pid_namespace = pid_namespace();
    arena_init(header, limit);
}

static bool map_first(long fd, uint64_t limit, char *reason, size_t size)
{
    /* The file is sparse: length costs nothing, so growing later needs no descriptor. */
    long error = sys_call3(SYS_ftruncate, fd, (long)limit, 0);
    if (error == 0)
        error = sys_call6(SYS_fallocate, fd, 0, 0, ARENA_FIRST_BACKED, 0, 0);
    if (error != 0)
        return failed("cannot reserve memory in", shm_path, error, reason, size);
    uint64_t length = limit < shm_segment_size(0) ? limit : shm_segment_size(0);
    long address = sys_call6(SYS_mmap, 0, (long)length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address < 0 && address > -4096)
        return failed("cannot map", shm_path, address, reason, size);
    shm_map.segment[0] = (uint8_t *)address;
    sys_call3(SYS_madvise, address, (long)length, MADV_DONTDUMP);
    return true;
}

bool shm_create(const char *directory, char *reason, size_t reason_size)
{
    uint64_t start_time = process_start_time();
    int length = snprintf(shm_path, sizeof shm_path, "%s/locktop-%u-%llu", directory, sys_getpid(),
                          (unsigned long long)start_time);
    if (length < 0 || (size_t)length + sizeof "-4294967295" > sizeof shm_path)
        return failed("the path is too long:", directory, -ENAMETOOLONG, reason, reason_size);
    uint64_t limit = largest_file();
    if (limit < ARENA_FIRST_BACKED)
        return failed("cannot make", shm_path, -EFBIG, reason, reason_size);
    long fd = open_new();
    if (fd < 0)
        return failed("cannot make", shm_path, fd, reason, reason_size);
    bool mapped = map_first(fd, limit, reason, reason_size);
    sys_call3(SYS_close, fd, 0, 0);
    if (!mapped) {
        shm_remove();
        return false;
    }
    struct lt_header *header = (struct lt_header *)shm_map.segment[0];
    fill_header(header, start_time, limit);
    shm_begin_generation();
    lt_shm = header;
    return true;
}

void shm_remove(void)
{
    if (shm_path[0])
        sys_call3(SYS_unlinkat, AT_FDCWD, (long)shm_path, 0);
}

void shm_leave_reason(const char *reason)
{
    char name[200];
    snprintf(name, sizeof name, "locktop: %s", reason);
    shm_name_mapping(name);
}

void shm_name_mapping(const char *name)
{
    long fd = sys_call3(SYS_memfd_create, (long)name, 1 /* MFD_CLOEXEC */, 0);
    if (fd < 0)
        return;
    /* The mapping is of an empty file: no limit on file sizes forbids it, and no thread touches
     * it. */
    sys_call6(SYS_mmap, 0, LT_PAGE, PROT_NONE, MAP_SHARED, fd, 0);
    sys_call3(SYS_close, fd, 0, 0);
}
