/* Reads the components of mangled names, without a demangler. */
#include "calls/function_name.h"

#include <stdint.h>
#include <string.h>

struct text {
    char *cursor;
    size_t room; /* with the zero at the end */
    bool has_components;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add(struct text *to, const char *from, size_t length)
{
    if (to->has_components)
        for (int i = 0; i < 2 && to->room > 1; i++, to->room--)
            *to->cursor++ = ':';
    to->has_components = true;
    if (length >= to->room)
        length = to->room - 1;
    memcpy(to->cursor, from, length);
    to->cursor += length;
    to->room -= length;
}

/* Rust ends a name with "h" and 16 hexadecimal digits. */
static bool is_rust_hash(const char *component, size_t length)
{
    return length == 17 && *component == 'h' && strspn(component + 1, "0123456789abcdef") >= 16;
}

/* Skips template arguments: I ... E, with further ones inside. Names inside may have an I or an E,
 * so each name is skipped as a whole. */
static const char *skip_arguments(const char *cursor)
{
    unsigned depth = 0;
    do {
        if (is_digit(*cursor)) {
            size_t length = 0;
            for (; is_digit(*cursor) && length < 1 << 20; cursor++)
                length = length * 10 + (size_t)(*cursor - '0');
            for (; length && *cursor; length--)
                cursor++;
            continue;
        }
        if (*cursor == 'I' || *cursor == 'N' || *cursor == 'X' || *cursor == 'L' ||
            *cursor == 'J' || *cursor == 'F')
            depth++;
        else if (*cursor == 'E')
            depth--;
        if (*cursor == 'S' && cursor[1] && cursor[1] != '_')
            cursor++; /* St, Sa: not an argument of its own */
        if (*cursor)
            cursor++;
    } while (*cursor && depth);
    return cursor;
}

/* One component with its length before it; NULL if there is none. */
static const char *read_component(const char *cursor, struct text *to)
{
    static const char anonymous[] = "_GLOBAL__N_";
    size_t length = 0;
    for (; is_digit(*cursor) && length < 1 << 20; cursor++)
        length = length * 10 + (size_t)(*cursor - '0');
    if (!length || strnlen(cursor, length) < length)
        return NULL;
    bool is_anonymous =
        length >= sizeof anonymous - 1 && strncmp(cursor, anonymous, sizeof anonymous - 1) == 0;
    if (!is_anonymous && !is_rust_hash(cursor, length))
        add(to, cursor, length);
    return cursor + length;
}

/* The class's own name, of a constructor or a destructor. */
static void add_special(struct text *to, const char *name, bool is_destructor)
{
    char class[FUNCTION_NAME_MAX];
    const char *end = to->cursor, *start = end;
    while (start > name && start[-1] != ':')
        start--;
    size_t length = (size_t)(end - start);
    if (length + 1 >= sizeof class)
        return;
    class[0] = '~';
    memcpy(class + 1, start, length);
    add(to, class + !is_destructor, length + is_destructor);
}

/* The components after _Z or _ZN. */
static void read_components(const char *cursor, bool is_nested, struct text *to, const char *name)
{
    while (cursor && *cursor) {
        if (is_digit(*cursor)) {
            cursor = read_component(cursor, to);
            if (!is_nested)
                return;
        } else if (*cursor == 'S' && cursor[1] == 't') {
            add(to, "std", 3);
            cursor += 2;
            is_nested = is_nested || is_digit(*cursor);
        } else if (*cursor == 'S') { /* a component that was named before, inside of arguments */
            cursor += strcspn(cursor, "_") + 1;
        } else if (*cursor == 'I') {
            cursor = skip_arguments(cursor);
        } else if (*cursor == 'L' || *cursor == 'K' || *cursor == 'V' || *cursor == 'r' ||
                   *cursor == 'R' || *cursor == 'O') {
            cursor++;
        } else if ((*cursor == 'C' || *cursor == 'D') && is_digit(cursor[1])) {
            add_special(to, name, *cursor == 'D');
            cursor += 2;
        } else if (*cursor == 'B' && is_digit(cursor[1])) { /* an ABI tag */
            struct text nothing = {.cursor = (char[8]){0}, .room = 1};
            cursor = read_component(cursor + 1, &nothing);
        } else {
            return; /* the end, or an operator */
        }
    }
}

void function_name_read(const char *symbol, char *name, size_t size)
{
    struct text to = {name, size, false};
    if (symbol[0] == '_' && symbol[1] == 'Z') {
        const char *cursor = symbol + 2;
        while (*cursor == 'Z') /* inside of a function, which is named first */
            cursor++;
        bool is_nested = *cursor == 'N';
        read_components(cursor + is_nested, is_nested, &to, name);
    }
    if (!to.has_components)
        add(&to, symbol, strcspn(symbol, "."));
    *to.cursor = 0;
}

static bool matches_one(const char *name, const char *pattern, size_t length)
{
    if (length && pattern[length - 1] == '*')
        return strncmp(name, pattern, length - 1) == 0;
    if (length >= 2 && pattern[length - 1] == ':')
        return strncmp(name, pattern, length) == 0;
    return strncmp(name, pattern, length) == 0 && name[length] == 0;
}

bool function_name_matches(const char *symbol, const char *patterns)
{
    char name[FUNCTION_NAME_MAX];
    function_name_read(symbol, name, sizeof name);
    while (*(patterns += strspn(patterns, ", "))) {
        size_t whole = strcspn(patterns, ","), length = whole;
        while (patterns[length - 1] == ' ')
            length--;
        if (matches_one(name, patterns, length))
            return true;
        patterns += whole;
    }
    return false;
}
