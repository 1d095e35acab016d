/* Loads one library after the other, as the arguments name them. The program calls a function of
 * each a hundred times, then unloads the library. All are built with -finstrument-functions. */
#include <dlfcn.h>

#include "../target.h"

#define PLAIN __attribute__((no_instrument_function))

static __attribute__((noinline)) void use(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void (*work)(void) = library ? (void (*)(void))dlsym(library, "library_work") : NULL;
    if (!work) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    for (int i = 0; i < 100; i++)
        work();
    dlclose(library);
}

PLAIN int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        use(argv[i]);
    say("{\"rounds\": 100}");
    char c;
    return read(0, &c, 1) < 0;
}
