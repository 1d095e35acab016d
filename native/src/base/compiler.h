/* Attributes and hints for the compiler: likely branches, inlining, exported symbols. */
#ifndef LOCKTOP_COMPILER_H
#define LOCKTOP_COMPILER_H

#define LIKELY(x)     __builtin_expect(!!(x), 1)
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define NOINLINE      __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define EXPORT        __attribute__((visibility("default")))

/* For a loop that waits for another CPU. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* Exports the hook `name`, which stands above in the same file, as __name too. */
#if __has_attribute(copy)
#define ALSO(name) EXPORT extern __typeof(name) __##name __attribute__((alias(#name), copy(name)))
#else
#define ALSO(name) EXPORT extern __typeof(name) __##name __attribute__((alias(#name)))
#endif

#endif
