/* A library beside a program and behind the lock library. Counts the acquisitions of reader-writer
 * locks and spin locks before which a try failed.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

atomic_ulong counted_rwlock, counted_spin;

static __thread bool failed_rwlock, failed_spin;

#define COUNT(name, type, kind)                                                                    \
    static int (*real_##name)(type *);                                                             \
    int name(type *lock)                                                                           \
    {                                                                                              \
        int result = real_##name(lock);                                                            \
        if (result == 0 && failed_##kind)                                                          \
            atomic_fetch_add(&counted_##kind, 1);                                                  \
        failed_##kind = result != 0;                                                               \
        return result;                                                                             \
    }

COUNT(pthread_rwlock_trywrlock, pthread_rwlock_t, rwlock)
COUNT(pthread_rwlock_wrlock, pthread_rwlock_t, rwlock)
COUNT(pthread_spin_trylock, pthread_spinlock_t, spin)
COUNT(pthread_spin_lock, pthread_spinlock_t, spin)

__attribute__((constructor)) static void find(void)
{
#define FIND(name) *(void **)&real_##name = dlsym(RTLD_NEXT, #name)
    FIND(pthread_rwlock_trywrlock);
    FIND(pthread_rwlock_wrlock);
    FIND(pthread_spin_trylock);
    FIND(pthread_spin_lock);
}
