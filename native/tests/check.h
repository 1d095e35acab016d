/* The whole test framework: a condition that must hold. */
#ifndef LOCKTOP_CHECK_H
#define LOCKTOP_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_EQUAL(actual, expected)                                                              \
    do {                                                                                           \
        unsigned long long f = (unsigned long long)(actual);                                       \
        unsigned long long e = (unsigned long long)(expected);                                     \
        if (f != e) {                                                                              \
            fprintf(stderr, "%s:%d: %s is %llu (%#llx), expected %llu (%#llx)\n", __FILE__,        \
                    __LINE__, #actual, f, f, e, e);                                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
