/* Reads the symbol table of an ELF file. The file is copied by pread(), not mapped: a file that
 * shrinks gives a short copy, and no SIGBUS. All sizes are checked. */
#include "base/elf_functions.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"

enum { SECTIONS_MAX = 4096, TABLE_MAX = 256 << 20 };

/* A copy of a part of the file. */
struct part {
    void *data;
    uint64_t size;
};

static void release(struct part *part)
{
    if (part->data)
        sys_call3(SYS_munmap, (long)part->data, (long)part->size, 0);
    part->data = NULL;
}

static bool read_all(long fd, void *to, uint64_t size, uint64_t offset)
{
    for (uint64_t done = 0; done < size;) {
        long got = sys_call6(SYS_pread64, fd, (long)((char *)to + done), (long)(size - done),
                             (long)(offset + done), 0, 0);
        if (got <= 0)
            return false;
        done += (uint64_t)got;
    }
    return true;
}

/* With a zero byte behind the last one, so that each text ends. */
static struct part read_part(long fd, uint64_t offset, uint64_t size)
{
    struct part none = {0}, part = {NULL, size + 1};
    if (!size || size > TABLE_MAX || offset > INT64_MAX - size)
        return none;
    long data = sys_call6(SYS_mmap, 0, (long)part.size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data < 0 && data > -4096)
        return none;
    part.data = (void *)data;
    if (read_all(fd, part.data, size, offset))
        return part;
    release(&part);
    return none;
}

static const ElfW(Shdr) * find_table(const ElfW(Shdr) * sections, unsigned count, unsigned type)
{
    for (unsigned i = 0; i < count; i++)
        if (sections[i].sh_type == type && sections[i].sh_entsize == sizeof(ElfW(Sym)) &&
            sections[i].sh_size && sections[i].sh_link < count)
            return &sections[i];
    return NULL;
}

static bool read_symbols(long fd, const ElfW(Shdr) * table, const ElfW(Shdr) * texts,
                         elf_function_use *use, void *argument)
{
    struct part symbols = read_part(fd, table->sh_offset, table->sh_size);
    struct part names = read_part(fd, texts->sh_offset, texts->sh_size);
    bool complete = symbols.data && names.data;
    uint64_t count = complete ? table->sh_size / sizeof(ElfW(Sym)) : 0;
    for (uint64_t i = 0; i < count; i++) {
        const ElfW(Sym) *symbol = (const ElfW(Sym) *)symbols.data + i;
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
            symbol->st_name < texts->sh_size)
            use(&(struct elf_function){(const char *)names.data + symbol->st_name, symbol->st_value,
                                       symbol->st_size, type != STT_FUNC},
                argument);
    }
    release(&symbols);
    release(&names);
    return complete;
}

static bool read_file(long fd, elf_function_use *use, void *argument)
{
    ElfW(Ehdr) header;
    if (!read_all(fd, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(ElfW(Shdr)) ||
        header.e_shnum > SECTIONS_MAX)
        return false;
    struct part sections =
        read_part(fd, header.e_shoff, (uint64_t)header.e_shnum * sizeof(ElfW(Shdr)));
    const ElfW(Shdr) *first = sections.data;
    const ElfW(Shdr) *table = first ? find_table(first, header.e_shnum, SHT_SYMTAB) : NULL;
    bool is_whole = table != NULL;
    if (first && !table)
        table = find_table(first, header.e_shnum, SHT_DYNSYM);
    bool complete =
        table && read_symbols(fd, table, &first[table->sh_link], use, argument) && is_whole;
    release(&sections);
    return complete;
}

bool elf_functions_read(const char *path, elf_function_use *use, void *argument)
{
    /* Not blocking: the name may belong to a pipe by now, whose reading then fails. */
    long fd =
        sys_call6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (fd < 0)
        return false;
    bool complete = read_file(fd, use, argument);
    sys_call3(SYS_close, fd, 0, 0);
    return complete;
}
