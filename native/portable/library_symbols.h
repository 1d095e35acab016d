/* Binds functions of libc to their oldest versions. So the library also loads with older versions
 * of glibc, down to 2.17. glibc 2.34 gave these functions a new version when it moved them into
 * libc.so.6. The functions themselves did not change. CMakeLists.txt includes this file into each
 * source. tests/unit/native/test_symbol_versions.py finds a function that is missing here. */
#ifndef LOCKTOP_LIBRARY_SYMBOLS_H
#define LOCKTOP_LIBRARY_SYMBOLS_H

/* The first glibc for aarch64 is 2.17. */
#if defined(__x86_64__)
#define OLDEST(name, version) __asm__(".symver " #name "," #name "@GLIBC_" #version);
#elif defined(__aarch64__)
#define OLDEST(name, version) __asm__(".symver " #name "," #name "@GLIBC_2.17");
#else
#define OLDEST(name, version)
#endif

OLDEST(dladdr, 2.2.5)
OLDEST(dlsym, 2.2.5)
OLDEST(dlvsym, 2.2.5)
OLDEST(pthread_testcancel, 2.2.5)

#endif
