/* locktop-bench: what locks and waits cost on this machine. collector/bench runs it with and
 * without the library, and compares.
 *
 *   locktop-bench list
 *       what there is to measure, as JSON
 *   locktop-bench step
 *       the time of one step of the work that threads do in a fight, as JSON
 *   locktop-bench cost PRIMITIVE THREADS SECONDS [WITH WITHOUT]
 *       what one operation costs, as JSON:
 *         ns, ticks       wall time, of CLOCK_MONOTONIC and of the processor's counter
 *         ticks_hz        the counter's rate meanwhile
 *         ticks_read_ns   what reading the counter between a lock and an unlock costs
 *       WITH and WITHOUT: steps of work with the lock and without it, if several threads fight
 *   locktop-bench calls SECONDS
 *       what the begin and the end of an instrumented function cost, as JSON: ns, ticks_read_ns
 *   locktop-bench mix SHARE CYCLES
 *       one acquisition of SHARE waits; prints the numbers, as JSON, and runs until its input
 *       ends
 *   locktop-bench clocks
 *       the clocks that a profile of the program's own code can use, as JSON
 *   locktop-bench profile SOURCE INTERVAL PAIRS
 *       times of the same work without and with such a profile, as JSON */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mix.h"
#include "primitives.h"
#include "profile_cost.h"
#include "traced.h"

static int list(void)
{
    static const unsigned threads[] = {1, FEW, MANY};
    for (unsigned i = 0; i < primitive_count; i++) {
        const char *comma = "";
        printf("%s{\"name\": \"%s\", \"operation\": \"%s\", \"threads\": [", i ? ",\n " : "[",
               primitives[i].name, primitives[i].operation);
        for (unsigned j = 0; j < sizeof threads / sizeof *threads; j++)
            if (can_run_with(&primitives[i], threads[j])) {
                printf("%s%u", comma, threads[j]);
                comma = ", ";
            }
        printf("]}");
    }
    puts("]");
    return 0;
}

static int step(void)
{
    printf("{\"step_ns\": %.4f}\n", work_step_ns());
    return 0;
}

static int cost(const char *name, unsigned threads, double seconds)
{
    for (unsigned i = 0; i < primitive_count; i++) {
        if (strcmp(primitives[i].name, name) != 0 || !can_run_with(&primitives[i], threads))
            continue;
        struct moment begin = moment();
        struct cost cost = measure(&primitives[i], threads, seconds);
        struct moment end = moment();
        double hz = (double)(end.ticks - begin.ticks) * 1e9 / (double)(end.ns - begin.ns);
        printf("{\"ns\": %.3f, \"ticks\": %.3f, \"ticks_hz\": %.0f, \"ticks_read_ns\": %.3f}\n",
               cost.ns, cost.ticks, hz, ticks_reading_ns());
        return 0;
    }
    fprintf(stderr, "locktop-bench: no %s with %u threads\n", name, threads);
    return 2;
}

static int calls(double seconds)
{
    printf("{\"ns\": %.3f, \"ticks_read_ns\": %.3f}\n", measure_batches(traced_batch, seconds).ns,
           ticks_reading_ns());
    return 0;
}

static int mix(unsigned share, unsigned cycles)
{
    char byte;
    run_mix(share, cycles);
    printf("{\"acquisitions\": %lu, \"contended\": %u}\n", (unsigned long)share * cycles, cycles);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}

/* 0 if the text is no number, or the number is too large. */
static unsigned number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    return *end || value > 1000000 ? 0 : (unsigned)value;
}

static double duration(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    return *end || !(value > 0 && value <= 3600) ? 0 : value;
}

/* False if a text is no number of steps. */
static bool set_work(const char *with, const char *without)
{
    char *end[2];
    long steps[] = {strtol(with, &end[0], 10), strtol(without, &end[1], 10)};
    for (int i = 0; i < 2; i++)
        if (*end[i] || steps[i] < 0 || steps[i] > 1000000)
            return false;
    fight_work = (struct fight_work){.with = (int)steps[0], .without = (int)steps[1]};
    return true;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (argc == 2 && !strcmp(command, "list"))
        return list();
    if (argc == 2 && !strcmp(command, "step"))
        return step();
    bool has_work = argc == 7 && set_work(argv[5], argv[6]);
    if ((argc == 5 || has_work) && !strcmp(command, "cost") && number(argv[3]) &&
        duration(argv[4]) > 0)
        return cost(argv[2], number(argv[3]), duration(argv[4]));
    if (argc == 3 && !strcmp(command, "calls") && duration(argv[2]) > 0)
        return calls(duration(argv[2]));
    if (argc == 2 && !strcmp(command, "clocks"))
        return list_clocks();
    if (argc == 5 && !strcmp(command, "profile") && number(argv[4]))
        return profile_cost((int)number(argv[2]), strtoull(argv[3], NULL, 10), number(argv[4]));
    if (argc == 4 && !strcmp(command, "mix") && number(argv[2]) >= 2 && number(argv[3]))
        return mix(number(argv[2]), number(argv[3]));
    fputs("usage: locktop-bench list | step | cost PRIMITIVE THREADS SECONDS [WITH WITHOUT] |"
          " calls SECONDS | mix SHARE CYCLES | clocks | profile SOURCE INTERVAL PAIRS\n",
          stderr);
    return 2;
}
