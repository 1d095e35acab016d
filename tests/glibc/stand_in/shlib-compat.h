/* References to the oldest version of a symbol, which programs of 2002 use. On x86-64 the oldest
 * version is 2.2.5. */
#ifndef SHLIB_COMPAT_H
#define SHLIB_COMPAT_H

#define PTHREAD_IN_LIBC 1
#define TEST_COMPAT(library, introduced, obsoleted) 1
#define compat_symbol_reference(library, local, symbol, version)                                   \
    __asm__(".symver " #local ", " #symbol "@GLIBC_2.2.5")

#endif
