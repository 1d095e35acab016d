/* Indents JSON: many flat objects, as the elements of one list. */
#include "reader.h"

#include <string.h>

enum { MAX_ADDED = 8 }; /* bytes that one byte of the text becomes at most */

static char *put(char *to, const char *text)
{
    size_t size = strlen(text);

    memcpy(to, text, size);
    return to + size;
}

uint64_t lt_indent_objects(const char *text, uint64_t size, char *to, uint64_t capacity)
{
    char *begin = to;
    int is_inside = 0;

    for (uint64_t i = 0; i < size; i++) {
        if (capacity - (uint64_t)(to - begin) < MAX_ADDED)
            return 0;
        switch (text[i]) {
        case '{':
            is_inside = 1;
            to = put(to, "{\n     ");
            break;
        case '}':
            is_inside = 0;
            to = put(to, "\n    }");
            break;
        case ',': to = put(to, is_inside ? ",\n     " : ",\n    "); break;
        case ':': to = put(to, ": "); break;
        default: *to++ = text[i];
        }
    }
    return (uint64_t)(to - begin);
}
