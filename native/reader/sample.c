/* Samples the registers and the stack of a running thread by perf_event_open(2). */
#include "sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A record of a sample, in the form that lt_open_sampler() asks for (perf_event_open(2),
 * PERF_RECORD_SAMPLE). */
struct reading {
    const uint8_t *ring;
    uint64_t size; /* a power of two */
    uint64_t tail;
    uint64_t left; /* bytes of the record */
};

static struct perf_event_attr task_clock(uint64_t period_ns, uint64_t registers, int user_only)
{
    struct perf_event_attr wanted;

    memset(&wanted, 0, sizeof wanted);
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_TASK_CLOCK;
    wanted.sample_period = period_ns;
    wanted.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    wanted.sample_regs_user = registers;
    wanted.wakeup_events = 1;
    wanted.exclude_kernel = user_only ? 1 : 0;
    wanted.exclude_hv = user_only ? 1 : 0;
    return wanted;
}

static int opened(struct perf_event_attr *wanted, int32_t tid, int32_t cpu)
{
    long fd =
        syscall(SYS_perf_event_open, wanted, tid, cpu, -1, (unsigned long)PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

int lt_open_sampler(int32_t tid, uint64_t period_ns, uint64_t registers, int user_only)
{
    struct perf_event_attr wanted = task_clock(period_ns, registers, user_only);

    wanted.sample_stack_user = LT_SAMPLE_STACK;
    wanted.disabled = 1;
    return opened(&wanted, tid, -1);
}

static struct perf_event_attr stream(uint64_t period_ns, uint64_t registers, int user_only)
{
    struct perf_event_attr wanted = task_clock(period_ns, registers, user_only);

    wanted.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
    wanted.sample_stack_user = LT_STREAM_STACK;
    wanted.wakeup_events = 0; /* nobody polls: the ring is read by the clock */
    wanted.use_clockid = 1;
    wanted.clockid = CLOCK_MONOTONIC;
    return wanted;
}

int lt_open_stream(int32_t tid, uint64_t period_ns, uint64_t registers, int user_only)
{
    struct perf_event_attr wanted = stream(period_ns, registers, user_only);

    return opened(&wanted, tid, -1);
}

int lt_open_cpu_stream(int32_t cpu, uint64_t period_ns, uint64_t registers)
{
    struct perf_event_attr wanted = stream(period_ns, registers, 0);

    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.exclude_idle = 1;
    return opened(&wanted, -1, cpu);
}

int lt_run_stream(int fd, uint64_t period_ns)
{
    if (!period_ns)
        return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) ? -errno : 0;
    return ioctl(fd, PERF_EVENT_IOC_PERIOD, &period_ns) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)
               ? -errno
               : 0;
}

int lt_take_sample(int fd)
{
    return ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) ? -errno : 0;
}

static int take(struct reading *from, void *to, uint64_t size)
{
    uint64_t begin = from->tail & (from->size - 1), first = from->size - begin;

    if (size > from->left)
        return 0;
    if (first > size)
        first = size;
    memcpy(to, from->ring + begin, first);
    memcpy((uint8_t *)to + first, from->ring, size - first);
    from->tail += size;
    from->left -= size;
    return 1;
}

static int take_registers(struct reading *from, uint64_t wanted, uint64_t *registers)
{
    uint64_t abi;

    if (!take(from, &abi, sizeof abi) || abi != PERF_SAMPLE_REGS_ABI_64)
        return 0;
    for (unsigned number = 0; number < 64; number++)
        if (wanted >> number & 1 && !take(from, &registers[number], sizeof(uint64_t)))
            return 0;
    return 1;
}

/* The record has all bytes, also those that the kernel could not copy. The last word is how many it
 * could. */
static int take_stack(struct reading *from, uint8_t *stack, uint64_t room, uint32_t *stack_size)
{
    uint64_t size, copied;

    if (!take(from, &size, sizeof size) || size > room || !take(from, stack, size))
        return 0;
    if (size && !take(from, &copied, sizeof copied))
        return 0;
    *stack_size = (uint32_t)(size && copied < size ? copied : size);
    return 1;
}

int lt_read_sample(const void *mapped, uint64_t page, uint64_t size, uint64_t registers,
                   struct lt_sample *sample)
{
    const struct perf_event_mmap_page *control = mapped;
    uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
    struct reading from = {(const uint8_t *)mapped + page, size, 0, head};
    struct perf_event_header header;

    while (take(&from, &header, sizeof header) && header.size >= sizeof header) {
        struct reading record = from;

        record.left = header.size - sizeof header;
        if (record.left > from.left)
            return 0;
        if (header.type == PERF_RECORD_SAMPLE)
            return take_registers(&record, registers, sample->registers) &&
                   take_stack(&record, sample->stack, sizeof sample->stack, &sample->stack_size);
        from.tail += record.left;
        from.left -= record.left;
    }
    return 0;
}

/* Where a record of a sample in a stream begins. */
struct stream_head {
    uint32_t pid, tid;
    uint64_t time, ran;
};

/* A record of lost samples. */
struct lost_samples {
    uint64_t id, count;
};

static int is_wanted(const struct lt_wanted_threads *wanted, uint32_t tid)
{
    for (uint32_t index = 0; index < wanted->count; index++)
        if (wanted->tids[index] == tid)
            return 1;
    return 0;
}

static int take_stream_sample(struct reading *record, uint64_t registers,
                              const struct lt_wanted_threads *wanted,
                              struct lt_stream_sample *sample)
{
    struct stream_head head;

    if (!take(record, &head, sizeof head) || !is_wanted(wanted, head.tid))
        return 0;
    sample->time = head.time;
    sample->ran = head.ran;
    sample->tid = head.tid;
    return take_registers(record, registers, sample->registers) &&
           take_stack(record, sample->stack, sizeof sample->stack, &sample->stack_size);
}

uint32_t lt_read_stream(void *mapped, uint64_t page, uint64_t size, uint64_t registers,
                        const struct lt_wanted_threads *wanted, struct lt_stream_sample *samples,
                        uint32_t capacity, uint64_t *lost)
{
    struct perf_event_mmap_page *control = mapped;
    uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = control->data_tail;
    struct reading from = {(const uint8_t *)mapped + page, size, tail, head - tail};
    struct perf_event_header header;
    struct lost_samples lacking;
    uint32_t count = 0;

    while (count < capacity && take(&from, &header, sizeof header)) {
        struct reading record = from;

        if (header.size < sizeof header || header.size - sizeof header > from.left)
            break; /* no kernel writes so */
        record.left = header.size - sizeof header;
        if (header.type == PERF_RECORD_SAMPLE)
            count += take_stream_sample(&record, registers, wanted, &samples[count]) ? 1 : 0;
        else if (header.type == PERF_RECORD_LOST && take(&record, &lacking, sizeof lacking))
            *lost += lacking.count;
        from.tail += header.size - sizeof header;
        from.left -= header.size - sizeof header;
    }
    __atomic_store_n(&control->data_tail, from.tail, __ATOMIC_RELEASE);
    return count;
}
