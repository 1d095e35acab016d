/* Passes arguments and results of all kinds through instrumented functions. The program compares
 * each result with the same computation in place. The control words of both floating-point units
 * are changed before, and must stay. */
#include <complex.h>
#include <fenv.h>
#include <stdarg.h>
#include <string.h>

#include "../target.h"

#define PLAIN __attribute__((no_instrument_function))
#define OWN   __attribute__((noinline, noclone))

typedef double four_doubles __attribute__((vector_size(32)));
typedef float four_floats __attribute__((vector_size(16)));
typedef int eight_ints __attribute__((vector_size(32)));
struct large {
    double a[9];
    int b;
};
struct pair {
    double first;
    long second;
};

static OWN four_floats add_floats(four_floats a, four_floats b)
{
    return a + b;
}

static OWN __attribute__((target("avx2"))) four_doubles mix(four_doubles a, eight_ints b, double c)
{
    return a * c +
           __builtin_convertvector((__attribute__((vector_size(16))) int){b[0], b[2], b[4], b[6]},
                                   four_doubles);
}

static OWN __attribute__((target("avx2"))) four_doubles nested(four_doubles a, eight_ints b)
{
    four_doubles first = mix(a, b, 0.5);
    return first + mix(first, b, 2.0);
}

static OWN double sum_of(int count, ...)
{
    va_list arguments;
    double sum = 0;
    va_start(arguments, count);
    for (int i = 0; i < count; i++)
        sum += va_arg(arguments, double);
    va_end(arguments);
    return sum;
}

static OWN long double long_root(long double value, long double step)
{
    return value / 3.0L + step;
}

static OWN _Complex long double turned(_Complex long double value)
{
    return value * (0.0L + 1.0Li);
}

static OWN struct large make_large(double first, int second)
{
    struct large made = {{0}, second};
    for (int i = 0; i < 9; i++)
        made.a[i] = first * i;
    return made;
}

static OWN struct pair make_pair(double first, long second)
{
    return (struct pair){first + 0.25, second ^ 0x5a5a5a5a5a5aL};
}

static OWN __int128 wide(__int128 a, long b)
{
    return a * b + 7;
}

static OWN long many(long a, long b, long c, long d, long e, long f, long g, double h, long i)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + (long)(8 * h) + 9 * i;
}

static OWN int keeps_errno(int value)
{
    return errno == value;
}

static PLAIN unsigned mxcsr(void)
{
    return __builtin_ia32_stmxcsr();
}

static PLAIN unsigned short x87_control(void)
{
    unsigned short word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
}

static PLAIN __attribute__((target("avx2"))) void check_vectors(int i)
{
    four_doubles a = {1.5 * i, -2.25, 3e100, 0.1 * i};
    eight_ints b = {i, 1, -i, 3, 5 * i, 5, 77, 7};
    four_doubles first = a * 0.5 + (four_doubles){b[0], b[2], b[4], b[6]};
    four_doubles wanted = first + (first * 2.0 + (four_doubles){b[0], b[2], b[4], b[6]});
    four_doubles got = nested(a, b);
    check_equal("vector of doubles", memcmp(&got, &wanted, sizeof got), 0);
}

static PLAIN void check_all(int i)
{
    four_floats x = {1.0f * i, 2, 3, -4}, y = {0.5f, 0.25f, -1.0f * i, 8}, z = x + y;
    four_floats sum = add_floats(x, y);
    check_equal("vector of floats", memcmp(&sum, &z, sizeof z), 0);
    if (__builtin_cpu_supports("avx2"))
        check_vectors(i);
    check_equal("variable arguments",
                sum_of(10, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, .5 * i) == 45.0 + .5 * i,
                1);
    long double third = (long double)i / 3.0L + 0.125L;
    check_equal("long double", long_root(i, 0.125L) == third, 1);
    _Complex long double quarter = turned(3.0L + i * 1.0Li);
    check_equal("complex", creall(quarter) == -(long double)i && cimagl(quarter) == 3.0L, 1);
    struct large large = make_large(0.5 * i, i);
    check_equal("large result", large.b == i && large.a[8] == 4.0 * i, 1);
    struct pair pair = make_pair(i, i);
    check_equal("pair", pair.first == i + 0.25 && pair.second == (i ^ 0x5a5a5a5a5a5aL), 1);
    check_equal("128 bits", wide((__int128)i << 70, 3) == (((__int128)i << 70) * 3 + 7), 1);
    check_equal("many", many(i, 2, 3, 4, 5, 6, 7, 8.5, 9), i + 4 + 9 + 16 + 25 + 36 + 49 + 68 + 81);
    errno = i;
    check_equal("errno", keeps_errno(i), 1);
}

PLAIN int main(void)
{
    fesetround(FE_DOWNWARD);
    feenableexcept(FE_DIVBYZERO);
    unsigned vector_control = mxcsr() & 0xffc0;
    unsigned short control = x87_control();
    for (int i = 0; i < 20000; i++)
        check_all(i);
    check_equal("MXCSR", mxcsr() & 0xffc0, vector_control);
    check_equal("x87 control word", x87_control(), control);
    return verdict_and_stay();
}
