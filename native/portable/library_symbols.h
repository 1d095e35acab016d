/* Binds functions of libc to their oldest versions. So the library also loads with older versions
 * of glibc, down to 2.17. glibc 2.34 gave these functions a new version when it moved them into
 * libc.so.6. The functions themselves did not change. CMakeLists.txt includes this file into each
 * source. tests/unit/native/test_symbol_versions.py finds a function that is missing here. */
#ifndef LOCKTOP_LIBRARY_SYMBOLS_H
#define LOCKTOP_LIBRARY_SYMBOLS_H

/* The first glibc for aarch64 is 2.17. */
#if defined(__x86_64__)
#define RENAMED(name, old, version) __asm__(".symver " #name "," #old "@GLIBC_" #version);
#elif defined(__aarch64__)
#define RENAMED(name, old, version) __asm__(".symver " #name "," #old "@GLIBC_2.17");
#else
#define RENAMED(name, old, version)
#endif
#define OLDEST(name, version) RENAMED(name, name, version)

/* With _GNU_SOURCE the headers of glibc 2.38 and later call these in place of the old functions.
 * They also read binary numbers such as 0b1, which nobody passes here. */
RENAMED(__isoc23_sscanf, sscanf, 2.2.5)
RENAMED(__isoc23_strtol, strtol, 2.2.5)
RENAMED(__isoc23_strtoul, strtoul, 2.2.5)
RENAMED(__isoc23_strtoull, strtoull, 2.2.5)

OLDEST(dladdr, 2.2.5)
OLDEST(dladdr1, 2.3.3)
OLDEST(dlsym, 2.2.5)
OLDEST(dlvsym, 2.2.5)
OLDEST(pthread_testcancel, 2.2.5)

#endif
