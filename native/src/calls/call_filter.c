/* Chooses functions by name. The symbol table of a module is read once, when one of its functions
 * is called for the first time. */
#include "calls/call_filter.h"

#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "base/elf_functions.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/tls.h"
#include "calls/function_name.h"
#include "shm/segment.h"

enum { CAPACITY = 1 << CALL_FILTER_BITS, MAX_COUNT = CAPACITY / 4 * 3, MODULES_MAX = 256 };

struct call_filter lt_call_filter;

/* A loaded file whose functions are in the table. */
struct module {
    uint64_t start, end;
    uint64_t load_address;
};
static struct module modules[MODULES_MAX];
static uint32_t module_count;
static uint32_t working; /* a thread changes the table */

void call_filter_init(void)
{
    if (!*lt_settings.calls_match || lt_call_filter.table)
        return;
    long table = sys_call6(SYS_mmap, 0, CAPACITY * (long)sizeof(uint64_t), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table > 0 || table < -4095)
        lt_call_filter.table = (uint64_t *)table;
    else
        lt_settings.calls = false;
}

static uint64_t *entry_of(uint64_t function)
{
    uint64_t at = call_filter_hash(function);
    while (lt_call_filter.table[at] && lt_call_filter.table[at] << 1 != function << 1)
        at = (at + 1) % CAPACITY;
    return &lt_call_filter.table[at];
}

static void note_unnamed(void)
{
    if (lt_shm && !shm_is_of_parent())
        __atomic_fetch_or(&lt_shm->notes, LT_NOTE_CALLS_UNNAMED, __ATOMIC_RELAXED);
}

static void add(uint64_t function, bool wanted)
{
    uint64_t *entry = entry_of(function);
    if (*entry >> CALL_WANTED_BIT)
        return; /* one of two names of a function is enough */
    if (!*entry && lt_call_filter.count >= MAX_COUNT) {
        note_unnamed();
        return;
    }
    lt_call_filter.count += !*entry;
    uint64_t value = function | (uint64_t)wanted << CALL_WANTED_BIT;
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
}

static void add_symbol(const struct elf_function *function, void *module)
{
    if (function_name_matches(function->name, lt_settings.calls_match))
        add(((struct module *)module)->load_address + function->start, true);
}

struct search {
    uint64_t function;
    struct module module;
    char path[PATH_MAX];
};

static int find_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct search *search = argument;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || search->function < start ||
            search->function >= start + segment->p_memsz)
            continue;
        search->module = (struct module){start, start + segment->p_memsz, info->dlpi_addr};
        const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
        if (strlen(path) < sizeof search->path)
            strcpy(search->path, path);
        return 1;
    }
    return 0;
}

static bool is_known(uint64_t function)
{
    for (uint32_t i = 0; i < module_count; i++)
        if (function >= modules[i].start && function < modules[i].end)
            return true;
    return false;
}

/* The loader's list is read under a lock of the loader, which holds it only while it changes the
 * list. */
static void read_module(uint64_t function)
{
    static struct search search; /* one thread at a time is here */
    search = (struct search){.function = function};
    if (module_count == MODULES_MAX || !dl_iterate_phdr(find_module, &search) || !*search.path ||
        shm_is_sealed() || !elf_functions_read(search.path, add_symbol, &search.module))
        note_unnamed();
    if (search.module.end && module_count < MODULES_MAX)
        modules[module_count++] = search.module;
}

bool call_filter_find(uint64_t function)
{
    uint64_t known = *entry_of(function);
    if (known)
        return known >> CALL_WANTED_BIT;
    /* Another thread reads names, or a signal handler interrupted this one: the call is not
     * counted. */
    if (__atomic_exchange_n(&working, 1, __ATOMIC_ACQUIRE))
        return false;
    if (!is_known(function))
        read_module(function);
    if (!*entry_of(function))
        add(function, false);
    bool wanted = *entry_of(function) >> CALL_WANTED_BIT;
    __atomic_store_n(&working, 0, __ATOMIC_RELEASE);
    return wanted;
}

/* Later code at these addresses is looked up anew. The entries stay, with an address that no
 * function has: others may lie behind them. */
void call_filter_unloaded(uint64_t start, uint64_t end)
{
    if (!lt_call_filter.table || __atomic_exchange_n(&working, 1, __ATOMIC_ACQUIRE))
        return;
    for (uint32_t i = 0; i < CAPACITY; i++) {
        uint64_t function = lt_call_filter.table[i] & ~(1ull << CALL_WANTED_BIT);
        if (function >= start && function < end)
            __atomic_store_n(&lt_call_filter.table[i], 1, __ATOMIC_RELAXED);
    }
    for (uint32_t i = module_count; i-- > 0;)
        if (modules[i].start < end && modules[i].end > start)
            modules[i] = modules[--module_count];
    __atomic_store_n(&working, 0, __ATOMIC_RELEASE);
}
