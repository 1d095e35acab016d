/* The signals that glibc keeps for itself. */
#ifndef INTERNAL_SIGNALS_H
#define INTERNAL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#define SIGCANCEL __SIGRTMIN
#define SIGTIMER SIGCANCEL
#define SIGSETXID (__SIGRTMIN + 1)

static inline bool is_internal_signal(int signal)
{
    return signal == SIGCANCEL || signal == SIGSETXID;
}

#endif
