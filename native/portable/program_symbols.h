/* The same as library_symbols.h, with functions that the library itself exports. The library must
 * not include this file: a line here would give its own function that version. */
#ifndef LOCKTOP_PROGRAM_SYMBOLS_H
#define LOCKTOP_PROGRAM_SYMBOLS_H

#include "library_symbols.h"

OLDEST(pthread_barrier_init, 2.2.5)
OLDEST(pthread_barrier_wait, 2.2.5)
OLDEST(pthread_create, 2.2.5)
OLDEST(pthread_detach, 2.2.5)
OLDEST(pthread_join, 2.2.5)
OLDEST(pthread_mutex_timedlock, 2.2.5)
OLDEST(pthread_mutex_trylock, 2.2.5)
OLDEST(pthread_mutexattr_init, 2.2.5)
OLDEST(pthread_mutexattr_setprotocol, 2.4)
OLDEST(pthread_mutexattr_setpshared, 2.2.5)
OLDEST(pthread_mutexattr_setrobust, 2.12)
OLDEST(pthread_mutexattr_settype, 2.2.5)
OLDEST(pthread_once, 2.2.5)
OLDEST(pthread_rwlock_rdlock, 2.2.5)
OLDEST(pthread_rwlock_unlock, 2.2.5)
OLDEST(pthread_rwlock_wrlock, 2.2.5)
OLDEST(pthread_setaffinity_np, 2.3.4)
OLDEST(pthread_setname_np, 2.12)
OLDEST(pthread_sigmask, 2.2.5)
OLDEST(pthread_spin_init, 2.2.5)
OLDEST(pthread_spin_lock, 2.2.5)
OLDEST(pthread_spin_unlock, 2.2.5)
OLDEST(sem_init, 2.2.5)
OLDEST(sem_post, 2.2.5)
OLDEST(sem_wait, 2.2.5)

#endif
