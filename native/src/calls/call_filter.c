/* Chooses functions by name. The symbol table of a module is read once, when one of its functions
 * is called for the first time. */
#include "calls/call_filter.h"

#include <dlfcn.h>
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

enum {
    CAPACITY = 1 << CALL_FILTER_BITS,
    MAX_COUNT = CAPACITY / 4 * 3,
    MODULES_MAX = 256,
    GONE = 1 /* an entry of unloaded code: no function has this address */
};

struct call_filter lt_call_filter;

/* A loaded file whose functions are in the table. */
struct module {
    uint64_t start, end;
    uint64_t load_address;
};
static struct module modules[MODULES_MAX];
static uint32_t module_count;
static uint32_t gone;    /* entries of unloaded code */
static uint32_t working; /* a thread changes the table */

/* Finds the loaded file of an address. glibc 2.35 and later have the function, which takes no lock.
 */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
static int (*find_object)(void *address, struct dl_find_object *object);
#endif

void call_filter_init(void)
{
    if (!*lt_settings.calls_match || lt_call_filter.table)
        return;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    find_object = (int (*)(void *, struct dl_find_object *))dlsym(RTLD_DEFAULT, "_dl_find_object");
#endif
    long table = sys_call6(SYS_mmap, 0, CAPACITY * (long)sizeof(uint64_t), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table > 0 || table < -4095)
        lt_call_filter.table = (uint64_t *)table;
    else
        lt_settings.calls = false;
}

static uint64_t *entry_of(uint64_t function)
{
    uint64_t index = call_filter_hash(function);
    while (lt_call_filter.table[index] && lt_call_filter.table[index] << 1 != function << 1)
        index = (index + 1) % CAPACITY;
    return &lt_call_filter.table[index];
}

/* The first entry on the way of a function that no loaded function has. */
static uint64_t *unused_entry(uint64_t function)
{
    uint64_t index = call_filter_hash(function);
    while (lt_call_filter.table[index] > GONE)
        index = (index + 1) % CAPACITY;
    return &lt_call_filter.table[index];
}

static void note_unnamed(void)
{
    if (lt_shm && !shm_is_of_parent() && !(lt_shm->notes & LT_NOTE_CALLS_UNNAMED))
        __atomic_fetch_or(&lt_shm->notes, LT_NOTE_CALLS_UNNAMED, __ATOMIC_RELAXED);
}

static void add(uint64_t function, bool wanted)
{
    uint64_t *entry = entry_of(function);
    if (*entry >> CALL_WANTED_BIT)
        return; /* one of two names of a function is enough */
    if (!*entry)
        entry = unused_entry(function);
    if (!*entry && lt_call_filter.count >= MAX_COUNT) {
        note_unnamed();
        return;
    }
    lt_call_filter.count += !*entry;
    gone -= *entry == GONE;
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

static void keep_path(struct search *search, const char *path)
{
    path = *path ? path : "/proc/self/exe";
    if (strlen(path) < sizeof search->path)
        strcpy(search->path, path);
}

static int find_in_list(struct dl_phdr_info *info, size_t size, void *argument)
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
        keep_path(search, info->dlpi_name);
        return 1;
    }
    return 0;
}

/* The loader's list has a lock. A thread that reads the list has that lock too, and may wait for a
 * lock that this thread holds. So the list is the last resort. */
static bool find_module(struct search *search)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    struct dl_find_object object;
    if (find_object) {
        if (find_object((void *)search->function, &object) != 0)
            return false;
        search->module =
            (struct module){(uint64_t)object.dlfo_map_start, (uint64_t)object.dlfo_map_end,
                            object.dlfo_link_map->l_addr};
        keep_path(search, object.dlfo_link_map->l_name);
        return true;
    }
#endif
    return dl_iterate_phdr(find_in_list, search) != 0;
}

static bool is_known(uint64_t function)
{
    for (uint32_t i = 0; i < module_count; i++)
        if (function >= modules[i].start && function < modules[i].end)
            return true;
    return false;
}

static void read_module(uint64_t function)
{
    static struct search search; /* one thread at a time is here */
    search = (struct search){.function = function};
    if (module_count == MODULES_MAX || !find_module(&search) || !*search.path || shm_is_sealed() ||
        !elf_functions_read(search.path, add_symbol, &search.module))
        note_unnamed();
    if (search.module.end && module_count < MODULES_MAX)
        modules[module_count++] = search.module;
}

/* False if another thread works, or if a signal handler interrupted this one. A handler that never
 * returns, or a cancellation, must not end the work in the middle. A program that has confined
 * itself may be killed by the system call. */
static bool begin_work(uint64_t *signals)
{
    *signals = shm_is_sealed() ? UINT64_MAX : sys_block_signals();
    if (!__atomic_exchange_n(&working, 1, __ATOMIC_ACQUIRE))
        return true;
    if (*signals != UINT64_MAX)
        sys_restore_signals(*signals);
    return false;
}

static void end_work(uint64_t signals)
{
    __atomic_store_n(&working, 0, __ATOMIC_RELEASE);
    if (signals != UINT64_MAX) /* no mask of the kernel's: SIGKILL is never blocked */
        sys_restore_signals(signals);
}

/* Then each call of a function that is not in the table gets here. */
static bool is_full(void)
{
    bool full = lt_call_filter.count - gone >= MAX_COUNT;
    if (full)
        note_unnamed();
    return full;
}

bool call_filter_find(uint64_t function)
{
    uint64_t entry = *entry_of(function), signals;
    if (entry)
        return entry >> CALL_WANTED_BIT;
    /* The call is not counted. */
    if (__atomic_load_n(&working, __ATOMIC_RELAXED) || is_full() || !begin_work(&signals))
        return false;
    if (!is_known(function))
        read_module(function);
    if (!*entry_of(function))
        add(function, false);
    bool wanted = *entry_of(function) >> CALL_WANTED_BIT;
    end_work(signals);
    return wanted;
}

/* Later code at these addresses is looked up anew. The entries stay, with an address that no
 * function has: others may lie behind them. Another function may get such an entry. */
void call_filter_unloaded(uint64_t start, uint64_t end)
{
    uint64_t signals;
    if (!lt_call_filter.table || !begin_work(&signals))
        return;
    for (uint32_t i = 0; i < CAPACITY; i++) {
        uint64_t function = lt_call_filter.table[i] & ~(1ull << CALL_WANTED_BIT);
        if (function < start || function >= end)
            continue;
        __atomic_store_n(&lt_call_filter.table[i], GONE, __ATOMIC_RELAXED);
        gone++;
    }
    for (uint32_t i = module_count; i-- > 0;)
        if (modules[i].start < end && modules[i].end > start)
            modules[i] = modules[--module_count];
    end_work(signals);
}
