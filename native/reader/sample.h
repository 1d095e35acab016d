/* Samples of running threads by perf_event_open(2): registers, and a part of the stack. */
#ifndef LOCKTOP_SAMPLE_H
#define LOCKTOP_SAMPLE_H

#include <stdint.h>

enum { LT_SAMPLE_STACK = 32768 }; /* bytes of a stack that a sample copies */

/* The state of a running thread at one moment. */
struct lt_sample {
    /* the registers that the caller wants, by their numbers in asm/perf_regs.h */
    uint64_t registers[64];
    uint32_t stack_size;  /* bytes */
    uint8_t stack[32768]; /* LT_SAMPLE_STACK: from the stack pointer on */
};

/* Prepares to sample a thread each `period_ns` of its processor time, with the `registers` (a bit
 * for each number). With `user_only`, no sample is taken while the kernel works for the thread.
 * Returns a descriptor, of which the caller maps a page and a ring, or the negative errno. */
int lt_open_sampler(int32_t tid, uint64_t period_ns, uint64_t registers, int user_only);

/* Takes one sample the next time that the thread runs, and no other: poll(2) tells when. Returns 0
 * or the negative errno. */
int lt_take_sample(int fd);

/* Reads the first sample of a ring of `size` bytes, a power of two, that lies one `page` behind
 * `mapped`. Returns 0 if there is no sample. */
int lt_read_sample(const void *mapped, uint64_t page, uint64_t size, uint64_t registers,
                   struct lt_sample *sample);

enum { LT_STREAM_STACK = 8192 }; /* bytes of a stack in each sample of a stream */

/* One of many samples of a thread. */
struct lt_stream_sample {
    uint64_t time; /* nanoseconds, CLOCK_MONOTONIC */
    uint64_t ran;  /* nanoseconds in which the event counted, since it was opened */
    uint32_t tid;
    uint32_t stack_size;    /* bytes */
    uint64_t registers[64]; /* as in struct lt_sample */
    uint8_t stack[8192];    /* LT_STREAM_STACK: from the stack pointer on */
};

/* Samples a thread each `period_ns` of its processor time until the descriptor is closed. The
 * arguments and the result are as of lt_open_sampler(). The ring must be mapped for writing. */
int lt_open_stream(int32_t tid, uint64_t period_ns, uint64_t registers, int user_only);

/* Samples all threads that run on a CPU each `period_ns`, also those of other processes. Switches
 * between threads cost nothing more. Needs CAP_PERFMON or kernel.perf_event_paranoid 0 or less. The
 * arguments and the result are as of lt_open_stream(). */
int lt_open_cpu_stream(int32_t cpu, uint64_t period_ns, uint64_t registers);

/* Lets the next sample of a stream come `period_ns` from now on, and so on. With 0, none comes.
 * Returns 0 or the negative errno. */
int lt_run_stream(int fd, uint64_t period_ns);

/* The threads of which a reader wants samples. */
struct lt_wanted_threads {
    uint32_t count;
    uint32_t tids[64];
};

/* Moves at most `capacity` samples of the wanted threads out of a ring, the oldest first. Drops
 * those of other threads, and gives the room back to the kernel. Adds the number of samples that
 * found no room in the ring to `lost`. Returns the number of samples. */
uint32_t lt_read_stream(void *mapped, uint64_t page, uint64_t size, uint64_t registers,
                        const struct lt_wanted_threads *wanted, struct lt_stream_sample *samples,
                        uint32_t capacity, uint64_t *lost);

#endif
