/* Threads allocate and free memory, each what another thread allocated, and fork. The allocator
 * locks inside malloc, also in its fork handlers.
 */
#include <sched.h>
#include <sys/wait.h>

#include "../target.h"

enum { THREADS = 4, ROUNDS = 6000, PIECES = 64, FORKS = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *pieces[PIECES];
static size_t sizes[PIECES];

static size_t size_number(unsigned i)
{
    return 1 + i * 2654435761u % (i % 50 == 0 ? 300000 : 900);
}

static void *trades(void *argument)
{
    unsigned seed = (unsigned)(long)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned index = (i * 7 + seed) % PIECES;
        size_t size = size_number(i + seed), old_size;
        unsigned char *piece = malloc(size), *old;
        memset(piece, (int)size, size);
        pthread_mutex_lock(&lock);
        old = pieces[index];
        old_size = sizes[index];
        pieces[index] = piece;
        sizes[index] = size;
        pthread_mutex_unlock(&lock);
        for (size_t at = 0; old && at < old_size; at += 97)
            if (old[at] != (unsigned char)old_size)
                check_equal("what was written", old[at], (unsigned char)old_size);
        free(old);
    }
    return argument;
}

static void fork_one(void)
{
    int status = -1;
    pthread_mutex_lock(&lock);
    pid_t child = fork();
    pthread_mutex_unlock(&lock);
    if (child == 0) {
        trades((void *)1);
        _exit(failures != 0);
    }
    check_equal("waitpid", waitpid(child, &status, 0), child);
    check_equal("child", status, 0);
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(trades, (void *)(i * 1000), NULL);
    for (int i = 0; i < FORKS; i++)
        fork_one();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return verdict_and_stay();
}
