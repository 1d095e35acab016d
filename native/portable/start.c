/* Starts a program with the oldest version of libc's start function. The compiler's own start code
 * (crt1.o) calls __libc_start_main() without a version, and so gets this function. The new version
 * runs the program's constructors by itself. The old one calls the function that it gets. */
#include "library_symbols.h"

typedef int main_function(int, char **, char **);
typedef void initialiser(int, char **, char **);

extern int libc_start(main_function *program, int argc, char **argv, initialiser *init,
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end);
#if defined(__x86_64__)
__asm__(".symver libc_start, __libc_start_main@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver libc_start, __libc_start_main@GLIBC_2.17");
#endif

extern initialiser *__init_array_start[] __attribute__((visibility("hidden")));
extern initialiser *__init_array_end[] __attribute__((visibility("hidden")));

static void run_constructors(int argc, char **argv, char **environment)
{
    for (initialiser **next = __init_array_start; next < __init_array_end; next++)
        (*next)(argc, argv, environment);
}

__attribute__((visibility("hidden"))) int __libc_start_main(main_function *, int, char **,
                                                            initialiser *, void (*)(void),
                                                            void (*)(void), void *);

int __libc_start_main(main_function *program, int argc, char **argv, initialiser *init,
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    return libc_start(program, argc, argv, init ? init : run_constructors, fini, loader_fini,
                      stack_end);
}
