/* The part of glibc's internal lock header that the tests use. */
#ifndef PTHREADP_H
#define PTHREADP_H

#include <atomic.h>
#include <internal-signals.h>
#include <pthread.h>

#define __PTHREAD_NPTL 1
#define PTHREAD_RWLOCK_READER_SHIFT 3 /* of the word that counts the readers */
#define PTHREAD_RWLOCK_READER_OVERFLOW (1u << 31)

#endif
