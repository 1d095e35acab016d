/* The part of glibc's own header that the tests use; the original needs glibc's machine files. */
#ifndef ATOMIC_H
#define ATOMIC_H

#if __SIZEOF_POINTER__ == 8
#define __HAVE_64B_ATOMICS 1 /* internaltypes.h asks: the layout of a semaphore */
#endif

#define atomic_load_relaxed(at) __atomic_load_n(at, __ATOMIC_RELAXED)
#define atomic_load_acquire(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define atomic_store_relaxed(at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED)
#define atomic_store_release(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define atomic_fetch_add_relaxed(at, value) __atomic_fetch_add(at, value, __ATOMIC_RELAXED)
#define atomic_fetch_add_acq_rel(at, value) __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL)
#define atomic_increment(at) ((void)__atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST))
#define atomic_increment_val(at) __atomic_add_fetch(at, 1, __ATOMIC_SEQ_CST)
#define atomic_decrement(at) ((void)__atomic_sub_fetch(at, 1, __ATOMIC_SEQ_CST))

#endif
