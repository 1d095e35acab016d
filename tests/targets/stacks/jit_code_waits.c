/* A thread that waits for a mutex below run-time code, which only a file names.
 *
 *   jit_code_waits map             writes /tmp/perf-PID.map
 *   jit_code_waits dump DIRECTORY  writes jit-PID.dump in DIRECTORY, with the line too
 *   jit_code_waits later           writes the map only at a line
 *
 * Says the addresses of that code.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__) /* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#else /* stp x29,x30,[sp,#-16]!; mov x29,sp; blr x0; ldp x29,x30,[sp],#16; ret */
static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *made; /* the code; the file says that the code moved here from 0x1000 below */

static void take(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void *waiter(void *argument)
{
    ((void (*)(void (*)(void)))made)(take);
    return argument;
}

static void write_map(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *file = fopen(path, "we");
    fprintf(file, "%lx %zx was here before\n", (unsigned long)made, sizeof code);
    fprintf(file, "0x%lx 0x%zx Made::at <run> time [\033[31m\n", (unsigned long)made, sizeof code);
    fclose(file);
}

static void number(FILE *file, uint64_t value, size_t size)
{
    fwrite(&value, size, 1, file); /* little-endian, as are all that have this code */
}

static void record(FILE *file, uint32_t kind, uint32_t size)
{
    number(file, kind, 4);
    number(file, size, 4);
    number(file, 1, 8);
}

static void write_dump(const char *directory)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", directory, (int)getpid());
    FILE *file = fopen(path, "w+e");
    uint64_t address = (uintptr_t)made - 0x1000;
    number(file, 0x4a695444, 4);
    number(file, 1, 4);
    number(file, 40, 4);
    for (int i = 0; i < 7; i++)
        number(file, 0, 4);
    record(file, 2, 16 + 16 + 2 * 16 + sizeof "/app/made.lang" + 2);
    number(file, address, 8);
    number(file, 2, 8);
    number(file, address, 8);
    number(file, 41, 4);
    number(file, 0, 4);
    fwrite("/app/made.lang", sizeof "/app/made.lang", 1, file);
    number(file, address + 4, 8);
    number(file, 42, 4);
    number(file, 0, 4);
    fwrite("\xff", 2, 1, file);
    record(file, 0, 16 + 40 + sizeof "Made.run" + sizeof code);
    number(file, 0, 8);
    number(file, address, 8);
    number(file, address, 8);
    number(file, sizeof code, 8);
    number(file, 1, 8);
    fwrite("Made.run", sizeof "Made.run", 1, file);
    fwrite(code, sizeof code, 1, file);
    record(file, 1, 16 + 48);
    number(file, 0, 8);
    number(file, address, 8);
    number(file, address, 8);
    number(file, (uintptr_t)made, 8);
    number(file, sizeof code, 8);
    number(file, 1, 8);
    fflush(file);
    mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
    fclose(file);
}

int main(int argc, char **argv)
{
    made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    mprotect(made, 4096, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(made, made + sizeof code);
    if (argc > 2)
        write_dump(argv[2]);
    else if (strcmp(argv[1], "map") == 0)
        write_map();
    pthread_mutex_lock(&lock);
    pthread_t thread;
    pthread_create(&thread, NULL, waiter, NULL);
    printf("ready\n");
    fflush(stdout);
    while (getchar() == '\n') {
        write_map();
        printf("written\n");
        fflush(stdout);
    }
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}
