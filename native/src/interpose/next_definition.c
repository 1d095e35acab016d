/* Asks the loader for the first definition of a symbol and for that of a version, and chooses. */
#include "interpose/next_definition.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A symbol in the table of the object that defines the symbol. */
struct definition {
    const struct link_map *object;
    const ElfW(Sym) * symbol;
};

static bool locate(const void *address, struct definition *definition)
{
    Dl_info info;
    void *object = NULL, *symbol = NULL;
    bool has_object = dladdr1(address, &info, &object, RTLD_DL_LINKMAP) &&
                      dladdr1(address, &info, &symbol, RTLD_DL_SYMENT);
    *definition = (struct definition){object, symbol};
    return has_object && object && symbol;
}

/* An address in a dynamic section. The loader relocates these addresses where it can write. */
static uintptr_t address_in(const struct link_map *object, int64_t tag)
{
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_ptr < object->l_addr ? entry->d_un.d_ptr + object->l_addr
                                                      : entry->d_un.d_ptr;
    return 0;
}

static bool has_version(const struct definition *definition)
{
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)address_in(definition->object, DT_SYMTAB);
    const ElfW(Versym) *versions = (const ElfW(Versym) *)address_in(definition->object, DT_VERSYM);
    return symbols && versions &&
           (versions[definition->symbol - symbols] & 0x7fff) > VER_NDX_GLOBAL;
}

static bool is_behind(const struct link_map *object, const struct link_map *other)
{
    while (other && other != object)
        other = other->l_next;
    return other == object;
}

void *next_definition(const char *name, const char *version, const char *newest)
{
    void *first = dlsym(RTLD_NEXT, name), *exact = dlvsym(RTLD_NEXT, name, version);
    struct definition of_first, of_exact;
    /* The usual case, without a search in libc's table of symbols. */
    if (first == exact || first == dlvsym(RTLD_NEXT, name, newest))
        return exact;
    if (!locate(first, &of_first) || has_version(&of_first))
        return exact;
    if (exact && locate(exact, &of_exact) && is_behind(of_first.object, of_exact.object))
        return exact;
    return first;
}
