/* Sandboxes. A program that confines itself (seccomp(2)) is killed from then on for unexpected
 * system calls. Those of the library are among them. So the library makes its last system calls
 * before that. */
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/tls.h"
#include "interpose/real.h"
#include "shm/arena.h"
#include "shm/control.h"
#include "shm/segment.h"

enum loss { NOTHING, SYSTEM_CALLS, CLOCK };

/* The strict mode also takes the cycle counter away. */
static enum loss loss_of_prctl(long option, long value)
{
    if (option == PR_SET_SECCOMP)
        return value == SECCOMP_MODE_STRICT ? CLOCK : SYSTEM_CALLS;
    return option == PR_SET_TSC && value == PR_TSC_SIGSEGV ? CLOCK : NOTHING;
}

static enum loss loss_of_seccomp(long operation)
{
    switch (operation) {
    case SECCOMP_SET_MODE_STRICT: return CLOCK;
    case SECCOMP_SET_MODE_FILTER: return SYSTEM_CALLS;
    default: return NOTHING;
    }
}

static void note(uint32_t bit)
{
    if (lt_shm)
        __atomic_fetch_or(&lt_shm->notes, bit, __ATOMIC_RELAXED);
}

/* Prepares for what the program is about to lose. True if that changed anything. */
static bool prepare_for(enum loss loss)
{
    if (loss == NOTHING || shm_is_sealed())
        return false;
    watched(); /* a forked child must make its file now */
    if (loss == CLOCK) {
        note(LT_NOTE_NO_CLOCK);
        control_own(LT_LEVEL_DORMANT);
    }
    return shm_seal();
}

/* The call was refused: the state is as before, but a lost clock stays lost. */
static void undo(bool prepared, long result)
{
    if (prepared && result < 0)
        shm_unseal();
    else if (prepared)
        note(LT_NOTE_CONFINED);
}

/* The work of syscall() for these two numbers: the assembler of interpose/futex.c jumps here. */
long sandbox_syscall(long number, long a, long b, long c, long d, long e, long f);

__attribute__((used)) long sandbox_syscall(long number, long a, long b, long c, long d, long e,
                                           long f)
{
    bool prepared = prepare_for(number == SYS_seccomp ? loss_of_seccomp(a) : loss_of_prctl(a, b));
    long result = real_syscall(number, a, b, c, d, e, f);
    undo(prepared, result);
    return result;
}

/* <sys/prctl.h> declares "..."; all callers pass the arguments in the same registers. */
int prctl(int option, long a, long b, long c, long d);

EXPORT int prctl(int option, long a, long b, long c, long d)
{
    bool prepared = prepare_for(loss_of_prctl(option, a));
    int result = real_prctl(option, a, b, c, d);
    undo(prepared, result);
    return result;
}
