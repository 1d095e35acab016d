/* Reads the symbol tables of an ELF file, which is mapped as long as the search lasts. */
#include "profiling/elf_functions.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/sys.h"

struct image {
    const uint8_t *data;
    uint64_t size;
};

/* The bytes of a range of the file, NULL if the file does not have all of them. */
static const void *part(const struct image *image, uint64_t offset, uint64_t size)
{
    return offset <= image->size && size <= image->size - offset && offset % 8 == 0
               ? image->data + offset
               : NULL;
}

static bool is_named(const struct image *image, const Elf64_Shdr *strings, uint32_t at,
                     const char *name)
{
    uint64_t length = strlen(name) + 1;
    return strings->sh_offset <= image->size &&
           strings->sh_size <= image->size - strings->sh_offset && at < strings->sh_size &&
           length <= strings->sh_size - at &&
           memcmp(image->data + strings->sh_offset + at, name, length) == 0;
}

static bool find_in(const struct image *image, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                    uint64_t address, const char *name, struct elf_function *found)
{
    const Elf64_Sym *symbols = part(image, table->sh_offset, table->sh_size);
    for (uint64_t i = 0; symbols && i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *one = &symbols[i];
        if (ELF64_ST_TYPE(one->st_info) != STT_FUNC || !one->st_size || one->st_shndx == SHN_UNDEF)
            continue;
        if (name ? is_named(image, strings, one->st_name, name)
                 : address - one->st_value < one->st_size) {
            *found = (struct elf_function){one->st_value, one->st_size};
            return true;
        }
    }
    return false;
}

static bool find(const struct image *image, uint64_t address, const char *name,
                 struct elf_function *found)
{
    const Elf64_Ehdr *head = part(image, 0, sizeof *head);
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(Elf64_Shdr))
        return false;
    const Elf64_Shdr *sections =
        part(image, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections);
    static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (unsigned n = 0; sections && n < 2; n++)
        for (unsigned i = 0; i < head->e_shnum; i++)
            if (sections[i].sh_type == types[n] && sections[i].sh_link < head->e_shnum &&
                find_in(image, &sections[i], &sections[sections[i].sh_link], address, name, found))
                return true;
    return false;
}

bool elf_function_find(const char *path, uint64_t address, const char *name,
                       struct elf_function *found)
{
    long fd =
        sys_call6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (fd < 0)
        return false;
    struct stat status;
    bool is_found = false;
    if (sys_call3(SYS_fstat, fd, (long)&status, 0) == 0 && S_ISREG(status.st_mode) &&
        status.st_size > 0) {
        struct image image = {.size = (uint64_t)status.st_size};
        long data = sys_call6(SYS_mmap, 0, (long)image.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data > 0 || data < -4095) {
            image.data = (const uint8_t *)data;
            is_found = find(&image, address, name, found);
            sys_call3(SYS_munmap, data, (long)image.size, 0);
        }
    }
    sys_call3(SYS_close, fd, 0, 0);
    return is_found;
}
