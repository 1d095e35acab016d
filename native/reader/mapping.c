/* Copies parts of a file that another process may cut off at any time. */
#include "reader.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The copy that this thread makes now. A load behind the end of the file raises SIGBUS, and the
 * handler leaves the copy by this way. */
static _Thread_local sigjmp_buf *volatile way_out;
static struct sigaction former;
static volatile sig_atomic_t is_passing_on;

/* A signal that no copy caused goes on as if there were no handler here. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if (is_passing_on || (!(former.sa_flags & SA_SIGINFO) &&
                          (former.sa_handler == SIG_DFL || former.sa_handler == SIG_IGN))) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    is_passing_on = 1;
    if (former.sa_flags & SA_SIGINFO)
        former.sa_sigaction(number, info, context);
    else
        former.sa_handler(number);
    is_passing_on = 0;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    if (way_out && info->si_code > 0) /* else another process sent the signal */
        siglongjmp(*way_out, 1);
    pass_on(number, info, context);
}

/* Other code of this process may set a handler of its own at any time. */
static void take_bus_errors(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct sigaction now, wanted = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    wanted.sa_sigaction = on_bus_error;
    pthread_mutex_lock(&lock);
    if (!sigaction(SIGBUS, NULL, &now) &&
        !(now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error)) {
        former = now;
        sigaction(SIGBUS, &wanted, NULL);
    }
    pthread_mutex_unlock(&lock);
}

int lt_map_file(int fd, uint64_t size, struct lt_mapping *mapping)
{
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    int is_mapped = bytes != MAP_FAILED;

    mapping->bytes = is_mapped ? bytes : NULL;
    mapping->size = is_mapped ? size : 0;
    mapping->fd = fd;
    if (is_mapped)
        take_bus_errors();
    return is_mapped;
}

void lt_unmap_file(struct lt_mapping *mapping)
{
    if (mapping->size)
        munmap((void *)(uintptr_t)mapping->bytes, mapping->size);
    mapping->bytes = NULL;
    mapping->size = 0;
}

static int copy_mapped(void *to, const uint8_t *from, uint64_t size)
{
    sigjmp_buf here;

    if (sigsetjmp(here, 0)) {
        way_out = NULL;
        return 0;
    }
    way_out = &here;
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(to, from, size);
    atomic_thread_fence(memory_order_acquire); /* the next copy is a later one */
    atomic_signal_fence(memory_order_seq_cst);
    way_out = NULL;
    return 1;
}

int lt_copy(const struct lt_mapping *from, void *to, uint64_t size, uint64_t offset)
{
    uint8_t *cursor = to;

    if (size <= from->size && offset <= from->size - size)
        return copy_mapped(to, from->bytes + offset, size);
    while (size) {
        ssize_t got = pread(from->fd, cursor, size, (off_t)offset);
        if (got <= 0)
            return 0;
        cursor += got;
        size -= (uint64_t)got;
        offset += (uint64_t)got;
    }
    return 1;
}
