/* Reads the components of mangled names, without a demangler. */
#include "calls/function_name.h"

#include <stdint.h>
#include <string.h>

struct text {
    char *at;
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
            *to->at++ = ':';
    to->has_components = true;
    if (length >= to->room)
        length = to->room - 1;
    memcpy(to->at, from, length);
    to->at += length;
    to->room -= length;
}

/* Rust ends a name with "h" and 16 hexadecimal digits. */
static bool is_rust_hash(const char *component, size_t length)
{
    return length == 17 && *component == 'h' && strspn(component + 1, "0123456789abcdef") >= 16;
}

/* Skips template arguments: I ... E, with further ones inside. Names inside may have an I or an E,
 * so each name is skipped as a whole. */
static const char *skip_arguments(const char *at)
{
    unsigned depth = 0;
    do {
        if (is_digit(*at)) {
            size_t length = 0;
            for (; is_digit(*at) && length < 1 << 20; at++)
                length = length * 10 + (size_t)(*at - '0');
            for (; length && *at; length--)
                at++;
            continue;
        }
        if (*at == 'I' || *at == 'N' || *at == 'X' || *at == 'L' || *at == 'J' || *at == 'F')
            depth++;
        else if (*at == 'E')
            depth--;
        if (*at == 'S' && at[1] && at[1] != '_')
            at++; /* St, Sa: not an argument of its own */
        if (*at)
            at++;
    } while (*at && depth);
    return at;
}

/* One component with its length before it; NULL if there is none. */
static const char *read_component(const char *at, struct text *to)
{
    static const char anonymous[] = "_GLOBAL__N_";
    size_t length = 0;
    for (; is_digit(*at) && length < 1 << 20; at++)
        length = length * 10 + (size_t)(*at - '0');
    if (!length || strnlen(at, length) < length)
        return NULL;
    bool is_anonymous =
        length >= sizeof anonymous - 1 && strncmp(at, anonymous, sizeof anonymous - 1) == 0;
    if (!is_anonymous && !is_rust_hash(at, length))
        add(to, at, length);
    return at + length;
}

/* The class's own name, of a constructor or a destructor. */
static void add_special(struct text *to, const char *name, bool is_destructor)
{
    char class[FUNCTION_NAME_MAX];
    const char *end = to->at, *start = end;
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
static void read_components(const char *at, bool is_nested, struct text *to, const char *name)
{
    while (at && *at) {
        if (is_digit(*at)) {
            at = read_component(at, to);
            if (!is_nested)
                return;
        } else if (*at == 'S' && at[1] == 't') {
            add(to, "std", 3);
            at += 2;
            is_nested = is_nested || is_digit(*at);
        } else if (*at == 'S') { /* a component that was named before, inside of arguments */
            at += strcspn(at, "_") + 1;
        } else if (*at == 'I') {
            at = skip_arguments(at);
        } else if (*at == 'L' || *at == 'K' || *at == 'V' || *at == 'r' || *at == 'R' ||
                   *at == 'O') {
            at++;
        } else if ((*at == 'C' || *at == 'D') && is_digit(at[1])) {
            add_special(to, name, *at == 'D');
            at += 2;
        } else if (*at == 'B' && is_digit(at[1])) { /* an ABI tag */
            struct text nothing = {.at = (char[8]){0}, .room = 1};
            at = read_component(at + 1, &nothing);
        } else {
            return; /* the end, or an operator */
        }
    }
}

void function_name_read(const char *symbol, char *name, size_t size)
{
    struct text to = {name, size, false};
    if (symbol[0] == '_' && symbol[1] == 'Z') {
        const char *at = symbol + 2;
        while (*at == 'Z') /* inside of a function, which is named first */
            at++;
        bool is_nested = *at == 'N';
        read_components(at + is_nested, is_nested, &to, name);
    }
    if (!to.has_components)
        add(&to, symbol, strcspn(symbol, "."));
    *to.at = 0;
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
