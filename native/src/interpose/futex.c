/* Waits and wakes in the futex system call itself: std::atomic::wait, Rust's std, abseil and others
 * make it through libc's syscall(). The program alone knows whether a thread holds anything. */
#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "account/wait.h"
#include "account/wake.h"
#include "base/lock_key.h"
#include "base/tls.h"
#include "interpose/real.h"
#include "stack/capture.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

/* syscall() must stay what it is for every other number. With vfork or clone behind it, it may
 * return on another stack, or twice. So a call that is neither a futex nor a sandbox leaves before
 * there is a frame. */
#define TO_STRING(x) #x
#define NUMBER(x)    TO_STRING(x)
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl syscall\n"
    ".type syscall, @function\n"
    "syscall:\n"
    "    .cfi_startproc\n"
    "    cmpl $" NUMBER(
        SYS_futex) ", %edi\n"
                   "    je futex_hook\n"
                   "    cmpl $" NUMBER(
                       SYS_futex_waitv) ", %edi\n"
                                        "    je futex_hook\n"
                                        "    cmpl $" NUMBER(
                                            SYS_seccomp) ", %edi\n"
                                                         "    je sandbox_syscall\n"
                                                         "    cmpl $" NUMBER(
                                                             SYS_prctl) ", %edi\n"
                                                                        "    je sandbox_syscall\n"
                                                                        "    jmp "
                                                                        "*real_syscall(%rip)\n"
                                                                        "    .cfi_endproc\n"
                                                                        ".size syscall, . - "
                                                                        "syscall\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".globl syscall\n"
    ".type syscall, %function\n"
    "syscall:\n"
    "    .cfi_startproc\n"
    "    cmp w0, " NUMBER(
        SYS_futex) "\n"
                   "    b.eq futex_hook\n"
                   "    cmp w0, " NUMBER(
                       SYS_futex_waitv) "\n"
                                        "    b.eq futex_hook\n"
                                        "    cmp w0, " NUMBER(
                                            SYS_seccomp) "\n"
                                                         "    b.eq sandbox_syscall\n"
                                                         "    cmp w0, " NUMBER(
                                                             SYS_prctl) "\n"
                                                                        "    b.eq sandbox_syscall\n"
                                                                        "    adrp x16, "
                                                                        "real_syscall\n"
                                                                        "    ldr x16, [x16, "
                                                                        ":lo12:real_syscall]\n"
                                                                        "    br x16\n"
                                                                        "    .cfi_endproc\n"
                                                                        ".size syscall, . - "
                                                                        "syscall\n");
#endif

static inline bool is_wait(long number, long operation)
{
    if (number == SYS_futex_waitv)
        return true;
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2: return true;
    default: return false;
    }
}

/* Not the requeues: they are signals of conditions. */
static inline bool is_wake(long number, long operation)
{
    if (number != SYS_futex)
        return false;
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_WAKE_OP:
    case FUTEX_UNLOCK_PI: return true;
    default: return false;
    }
}

/* futex(address, operation, value, timeout ...), futex_waitv(waiters, count, flags, timeout ...).
 * futex_waitv() has its addresses in an array, which may be unreadable, and only the kernel finds
 * that out. So all such waits count as one lock. */
static uint64_t key_of(long number, long a)
{
    return lock_key(LT_KIND_FUTEX, number == SYS_futex ? (const void *)a : NULL);
}

static NOINLINE long wait_for(struct lt_thread *t, long number, long a, long b, long c, long d,
                              long e, long f, const uintptr_t *frame)
{
    struct waiting waiting;
    wait_begin(t, &waiting,
               &(struct wait_for){.key = key_of(number, a), .flags = d ? LT_WAIT_TIMED : 0}, frame);
    long result = real_syscall(number, a, b, c, d, e, f);
    if (result >= 0)
        wait_end_done(&waiting);
    else if (errno == ETIMEDOUT || errno == EINTR)
        wait_end_without(&waiting);
    else
        wait_end_refused(&waiting); /* EAGAIN: the word had changed before */
    return result;
}

static NOINLINE long wake(struct lt_thread *t, long number, long a, long b, long c, long d, long e,
                          long f, const uintptr_t *frame)
{
    struct wake wake;
    bool is_due = wake_begin(t, lock_key(LT_KIND_FUTEX, (const void *)a), &wake);
    long result = real_syscall(number, a, b, c, d, e, f);
    if (UNLIKELY(is_due)) {
        int error = errno;
        wake_end(t, &wake, frame);
        errno = error;
    }
    return result;
}

/* Declared for the assembler only. */
long futex_hook(long number, long a, long b, long c, long d, long e, long f);

__attribute__((used)) long futex_hook(long number, long a, long b, long c, long d, long e, long f)
{
    struct lt_thread *t;
    if (is_wait(number, b) && (t = watched()))
        return wait_for(t, number, a, b, c, d, e, f, FRAME());
    if (is_wake(number, b) && (t = waker()))
        return wake(t, number, a, b, c, d, e, f, FRAME());
    return real_syscall(number, a, b, c, d, e, f);
}
