/* Tests of taking a free mutex in place. The code works with this libc, and is not used if another
 * library must see each call. */
#include <stdint.h>

#include "base/sys.h"
#include "check.h"
#include "interpose/fast_mutex.h"

static char *valgrind[] = {"LD_PRELOAD=/usr/libexec/valgrind/vgpreload_core-amd64-linux.so:x.so",
                           NULL};

static pthread_mutex_t of_kind(int kind)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutex_init(&mutex, &attributes);
    return mutex;
}

static void takes_what_is_free(int kind)
{
    uint32_t tid = sys_gettid();
    pthread_mutex_t mutex = of_kind(kind);
    CHECK(mutex_is_plain(mutex_kind(&mutex)));
    for (int i = 0; i < 3; i++) {
        CHECK(mutex_take(&mutex, mutex_kind(&mutex), tid));
        CHECK(!mutex_take(&mutex, mutex_kind(&mutex), tid));
        CHECK_EQUAL(mutex.__data.__owner, tid);
        CHECK_EQUAL(mutex.__data.__nusers, 1);
        CHECK_EQUAL(pthread_mutex_unlock(&mutex), 0);
        CHECK_EQUAL(mutex.__data.__nusers, 0);
    }
}

static void leaves_the_other_kinds(void)
{
    pthread_mutex_t robust, inheriting;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting, &attributes);
    CHECK(!mutex_is_plain(mutex_kind(&robust)) && !mutex_is_plain(mutex_kind(&inheriting)));
}

static void *in_a_thread(void *argument)
{
    takes_what_is_free(PTHREAD_MUTEX_TIMED_NP);
    takes_what_is_free(PTHREAD_MUTEX_RECURSIVE_NP);
    takes_what_is_free(PTHREAD_MUTEX_ERRORCHECK_NP);
    takes_what_is_free(PTHREAD_MUTEX_ADAPTIVE_NP);
    return argument;
}

int main(void)
{
    real_resolve();
#ifndef __SANITIZE_ADDRESS__ /* a sanitizer stands before libc: the answer may be either */
    CHECK(fast_mutex_works(NULL));
#endif
    CHECK(!fast_mutex_works(valgrind));
    in_a_thread(NULL);
    leaves_the_other_kinds();
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, in_a_thread, NULL), 0);
    pthread_join(thread, NULL);
    return 0;
}
