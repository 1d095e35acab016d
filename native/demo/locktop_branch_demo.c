/* One loop with a branch, on random bytes and then on the same bytes in order. The processor can
 * predict the branch of the latter. Both are profiled (docs/profile.md), as "random" and "sorted".
 *
 *   locktop run -- locktop-branch-demo [--wait] [PASSES]
 *
 * Prints the CPU time of both as JSON. With --wait the program ends when its input ends. Until then
 * `locktop profile show -p PID random sorted` can read the profiles. */
#include <locktop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 1 << 16, PASSES = 4000, BUCKET = 4 };

static unsigned char bytes[SIZE];

/* Compilers like to replace such a branch by a conditional move, or by vector code. The empty
 * `asm` in the branch is code that they may neither move nor execute on the other way. */
__attribute__((noinline)) static unsigned long sum_up_to_0x7f(const unsigned char *data, int size)
{
    unsigned long sum = 0;
    for (int i = 0; i < size; i++) {
        if (data[i] <= 0x7f) {
            sum += data[i];
            __asm__ volatile("" : "+r"(sum));
        }
    }
    return sum;
}

static unsigned long long cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

static int must(int result)
{
    if (result >= 0)
        return result;
    fprintf(stderr, "%s\n", locktop_profile_error(result));
    exit(1);
}

static int by_value(const void *first, const void *other)
{
    return *(const unsigned char *)first - *(const unsigned char *)other;
}

/* Sums all bytes some times under a profile of its own; returns the CPU time in ns. */
static unsigned long long profiled(const char *name, int source, int passes, unsigned long *sum)
{
    int profile = must(locktop_profile_create_function(sum_up_to_0x7f, BUCKET, source, 0,
                                                       LOCKTOP_THIS_THREAD, name));
    must(locktop_profile_start(profile));
    unsigned long long begin = cpu_ns();
    for (int i = 0; i < passes; i++)
        *sum += sum_up_to_0x7f(bytes, SIZE);
    unsigned long long taken = cpu_ns() - begin;
    must(locktop_profile_stop(profile));
    return taken;
}

int main(int argc, char **argv)
{
    int passes = PASSES, waits = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--wait"))
            waits = 1;
        else
            passes = atoi(argv[i]);
    }
    unsigned state = 1;
    for (int i = 0; i < SIZE; i++) {
        state = state * 1103515245u + 12345u;
        bytes[i] = (unsigned char)(state >> 16);
    }
    struct locktop_profile_source_info info;
    must(locktop_profile_source_info(LOCKTOP_TASK_CLOCK, &info));
    int source = info.status == LOCKTOP_OK ? LOCKTOP_TASK_CLOCK : LOCKTOP_TIMER;
    unsigned long random = 0, sorted = 0;
    unsigned long long random_ns = profiled("random", source, passes, &random);
    qsort(bytes, SIZE, 1, by_value);
    unsigned long long sorted_ns = profiled("sorted", source, passes, &sorted);
    printf("{\"random_ns\": %llu, \"sorted_ns\": %llu, \"random\": %lu, \"sorted\": %lu}\n",
           random_ns, sorted_ns, random, sorted);
    fflush(stdout);
    char byte;
    while (waits && read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return random == sorted ? 0 : 1;
}
