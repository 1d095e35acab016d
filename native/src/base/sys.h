/* System calls without libc: no errno, no cancellation point, nothing that a library can
 * interpose. */
#ifndef LOCKTOP_SYS_H
#define LOCKTOP_SYS_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
/* Returns what the kernel returns: -errno on failure. */
static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "locktop: this processor has no system call stub yet"
#endif

static inline long sys_call3(long number, long a, long b, long c)
{
    return sys_call6(number, a, b, c, 0, 0, 0);
}

/* Blocks all signals, also those of libc. Returns the former mask. */
static inline uint64_t sys_block_signals(void)
{
    uint64_t all = UINT64_MAX, before = 0;
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0);
    return before;
}

static inline void sys_restore_signals(uint64_t before)
{
    sys_call6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
}

static inline uint32_t sys_gettid(void)
{
    return (uint32_t)sys_call3(SYS_gettid, 0, 0, 0);
}

static inline uint32_t sys_getpid(void)
{
    return (uint32_t)sys_call3(SYS_getpid, 0, 0, 0);
}

#endif
