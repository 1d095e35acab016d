/* Code without a file, which the program registers as run-time compilers do, over an allocator that
 * locks. The unwinder allocates while it holds a lock of its own. The unwinder does so also when
 * the library unwinds for a lock of the allocator. With an argument, threads also fight for that
 * lock. Tests also build the program in two parts: -DALLOCATOR is a library, -DPROGRAM the rest.
 */
#include <unwind.h>

#include "../target.h"

enum { CODES = 50, POOL = 16 << 20, THREADS = 2, ROUNDS = 1000, BLOCKS = 20, DEPTHS = 37 };

void __register_frame(void *begin);

#ifndef PROGRAM
static _Alignas(16) char pool[POOL];
static size_t used;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
#ifdef ALLOCATOR
static pthread_mutex_t size_lock[1000];
#endif

void *malloc(size_t size)
{
    pthread_mutex_lock(&pool_lock);
#ifdef ALLOCATOR
    pthread_mutex_t *another = &size_lock[used / 16 % 1000];
    pthread_mutex_lock(another);
#endif
    size_t at = used + 16;
    used = (at + size + 15) & ~(size_t)15;
#ifdef ALLOCATOR
    pthread_mutex_unlock(another);
#endif
    pthread_mutex_unlock(&pool_lock);
    if (used > sizeof pool)
        _exit(3);
    *(size_t *)(void *)(pool + at - 16) = size;
    return pool + at;
}

void free(void *memory)
{
    (void)memory;
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* memory that was never allocated before */
}

void *realloc(void *old, size_t size)
{
    char *new = malloc(size);
    size_t before = old ? *(size_t *)(void *)((char *)old - 16) : 0;
    if (old)
        memcpy(new, old, before < size ? before : size);
    return new;
}

#endif

#ifndef ALLOCATOR
/* A CIE, one FDE and the end, as .eh_frame has them (Linux Standard Base, 10.6). */
struct unwind_table {
    uint32_t cie_length, cie_id;
    uint8_t version, augmentation, code_align, data_align, return_register, rules[7];
    uint32_t fde_length, cie_distance;
    uint64_t begin, size;
    uint32_t end;
} __attribute__((packed));

static char code[CODES + THREADS * ROUNDS][16];
static void *volatile memory[CODES];
static pthread_barrier_t begin;

static void compile(int number)
{
    static struct unwind_table tables[CODES + THREADS * ROUNDS];
    tables[number] = (struct unwind_table){
        .cie_length = 4 + 5 + 7,
        .version = 1,
        .code_align = 1,
        .data_align = 0x78, /* -8 */
        .return_register = 16,
        .rules = {0x0c, 7, 8, 0x90, 1, 0, 0}, /* CFA rsp + 8; return address below it */
        .fde_length = 4 + 16,
        .cie_distance = 4 + 4 + 5 + 7 + 4,
        .begin = (uint64_t)(uintptr_t)code[number],
        .size = sizeof code[number],
    };
    __register_frame(&tables[number]);
}

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *frames)
{
    (void)context;
    ++*(int *)frames;
    return _URC_NO_REASON;
}

/* Returns memory, and has a stack of its own for each depth. */
static KEPT void *allocate_at(int depth)
{
    void *volatile found = depth ? allocate_at(depth - 1) : malloc(1);
    return found;
}

/* The stack of each wait is new to the library, which calls the unwinder. The unwinder allocates
 * because the registered code is new too. */
static void *fight(void *first)
{
    pthread_barrier_wait(&begin);
    for (int i = 0; i < ROUNDS; i++) {
        compile(*(int *)first + i);
        for (int j = 0; j < BLOCKS; j++)
            allocate_at((i + j) % DEPTHS);
    }
    return NULL;
}

static void fights(void)
{
    pthread_t threads[THREADS];
    int first[THREADS];
    must(pthread_barrier_init(&begin, NULL, THREADS), "pthread_barrier_init");
    for (int i = 0; i < THREADS; i++) {
        first[i] = CODES + i * ROUNDS;
        threads[i] = start(fight, &first[i], NULL);
    }
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL), "pthread_join");
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < CODES; i++) {
        int frames = 0;
        compile(i);
        memory[i] = malloc(100); /* before any thread unwinds */
        _Unwind_Backtrace(count, &frames);
        check_equal("frames of main()", frames > 0, 1);
    }
    if (argc > 1)
        fights();
    return verdict();
}
#endif
