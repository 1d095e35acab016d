/* Calls 42 functions in all orders of three, which makes more nodes than a call tree may have. The
 * program says how many instrumented functions it called, and goes on at a line. */
#include "../target.h"

#define PLAIN __attribute__((no_instrument_function))

enum { FUNCTIONS = 42, DEEP = 3 };

static volatile long calls;
static PLAIN void call_all(int depth);

#define FUNCTION(n)                                                                                \
    static __attribute__((noinline)) void function_##n(int depth)                                  \
    {                                                                                              \
        calls++;                                                                                   \
        call_all(depth + 1);                                                                       \
    }
#define SEVEN(m, n) m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6)
#define ALL(m)      SEVEN(m, 1) SEVEN(m, 2) SEVEN(m, 3) SEVEN(m, 4) SEVEN(m, 5) SEVEN(m, 6)

ALL(FUNCTION)

#define NAME(n) function_##n,
static void (*const functions[FUNCTIONS])(int depth) = {ALL(NAME)};

static PLAIN void call_all(int depth)
{
    for (int i = 0; depth < DEEP && i < FUNCTIONS; i++)
        functions[i](depth);
}

PLAIN int main(void)
{
    call_all(0);
    call_all(0);
    printf("{\"calls\": %ld}\n", calls);
    fflush(stdout);
    char c;
    return read(0, &c, 1) < 0;
}
