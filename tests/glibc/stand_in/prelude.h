/* The macros that glibc's build defines on its command line and in config.h. Every test includes
 * this header first. */
#ifndef PRELUDE_H
#define PRELUDE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>
#include <sys/types.h>

#define TIMEOUTFACTOR 4 /* the tests' own limits of time, on a busy machine */
#define HAVE_TUNABLES 1
#define IS_IN(library) 0
#define libc_hidden_proto(...)
#define attribute_hidden
#define attribute_tls_model_ie __attribute__((tls_model("initial-exec")))
#define __glibc_likely(condition) __builtin_expect(!!(condition), 1)
#define __glibc_unlikely(condition) __builtin_expect(!!(condition), 0)

#endif
