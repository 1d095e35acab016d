/* glibc's configure makes this header; prelude.h has the macros that the tests need. */
