/* Profiles work in pieces that are shorter than an interval. Each piece has a thread of its own, or
 * a start and a stop of its own. Prints the CPU time of all pieces, and the samples.
 *
 * Arguments: "threads" or "starts".
 */
#include <stdbool.h>

#include "profiled_work.h"

DEFINE_WORK(piece_work)

enum { PIECES = 150, PIECE_MS = 7 };

static uint64_t worked_ns;

static void *one_piece(void *unused)
{
    worked_ns += piece_work(PIECE_MS);
    return unused;
}

static void in_threads(int profile)
{
    profile_must(locktop_profile_start(profile));
    for (int i = 0; i < PIECES; i++)
        pthread_join(start(one_piece, NULL, NULL), NULL);
    profile_must(locktop_profile_stop(profile));
}

static void between_starts(int profile)
{
    for (int i = 0; i < PIECES; i++) {
        profile_must(locktop_profile_start(profile));
        one_piece(NULL);
        profile_must(locktop_profile_stop(profile));
    }
}

int main(int argc, char **argv)
{
    bool is_threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    int profile = profile_must(locktop_profile_create_function(
        piece_work, 4, LOCKTOP_TIMER, 0, is_threads ? LOCKTOP_ALL_THREADS : LOCKTOP_THIS_THREAD,
        "pieces"));
    (is_threads ? in_threads : between_starts)(profile);
    struct locktop_profile_totals totals;
    uint64_t samples = read_counts(profile, &totals, 0, BUCKETS_MAX);
    printf("{\"cpu_ns\": %llu, \"samples\": %llu, \"interval\": %llu}\n",
           (unsigned long long)worked_ns, (unsigned long long)samples,
           (unsigned long long)totals.interval);
    fflush(stdout);
    hear();
    return 0;
}
