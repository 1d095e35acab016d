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

/* Fetches a cache line that the caller will read and then write. Else the line comes twice from
 * another CPU: first to be read, then to be written. */
static inline void fetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* Exports the hook `name`, which stands above in the same file, as __name too. */
#if __has_attribute(copy)
#define ALSO(name) EXPORT extern __typeof(name) __##name __attribute__((alias(#name), copy(name)))
#else
#define ALSO(name) EXPORT extern __typeof(name) __##name __attribute__((alias(#name)))
#endif

#endif
