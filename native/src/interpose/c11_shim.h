/* Results of C11 threads: glibc's translation of the results of pthreads (nptl/thrd_priv.h). */
#ifndef LOCKTOP_C11_SHIM_H
#define LOCKTOP_C11_SHIM_H

#include <errno.h>
#include <threads.h>

static inline int thrd_result(int error)
{
    switch (error) {
    case 0: return thrd_success;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    case EBUSY: return thrd_busy;
    default: return thrd_error;
    }
}

#endif
