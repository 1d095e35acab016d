/* Three functions take 70, 20 and 10 % of the time of a fourth. The program counts its calls and
 * measures its times. Then the program says both as JSON, and goes on at a line. */
#include "../target.h"

#define PLAIN __attribute__((no_instrument_function))

static double worked[3];
static long counts[3];
static volatile long sink;

static PLAIN double clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static PLAIN void work(int which, double seconds)
{
    double begin = clock_now(), end;
    do
        for (int i = 0; i < 100; i++)
            sink += i;
    while ((end = clock_now()) < begin + seconds);
    worked[which] += end - begin;
    counts[which]++;
}

static __attribute__((noinline)) void most(void)
{
    work(0, 0.0014);
}

static __attribute__((noinline)) void some(void)
{
    work(1, 0.0002);
}

static __attribute__((noinline)) int little(int depth)
{
    work(2, 0.00005);
    return depth;
}

static __attribute__((noinline)) int batch(void)
{
    int sum = 0;
    most();
    for (int i = 0; i < 2; i++)
        some();
    for (int i = 0; i < 4; i++)
        sum += little(i);
    return sum;
}

int main(void)
{
    char line[256];
    int sum = 0;
    for (;;) {
        for (int i = 0; i < 200; i++)
            sum += batch();
        snprintf(line, sizeof line,
                 "{\"counts\": [%ld, %ld, %ld], \"seconds\": [%.9f, %.9f, %.9f], \"sum\": %d}",
                 counts[0], counts[1], counts[2], worked[0], worked[1], worked[2], sum);
        say(line);
        hear();
    }
}
