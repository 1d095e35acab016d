/* The registration of unwind tables, by which run-time compilers tell libgcc about their code. From
 * GCC 13 on libgcc changes a tree meanwhile, whose locks are no mutexes (unwind-dw2-btree.h). Under
 * one of them libgcc waits for the next one, and allocates. The library must not unwind for such a
 * wait. Else the unwinder would wait forever for a lock of its own thread. */
#include <stdint.h>

#include "base/compiler.h"
#include "interpose/real.h"
#include "stack/stack_state.h"

static void begin_registration(void)
{
    stack_registering++;
}

static void end_registration(void)
{
    if (LIKELY(stack_registering)) /* the state of a forked child begins anew */
        stack_registering--;
}

#define REGISTER(name, parameters, arguments)                                                      \
    EXPORT void name parameters;                                                                   \
    void name parameters                                                                           \
    {                                                                                              \
        begin_registration();                                                                      \
        real_##name arguments;                                                                     \
        end_registration();                                                                        \
    }

REGISTER(__register_frame, (void *begin), (begin))
REGISTER(__register_frame_table, (void *begin), (begin))
REGISTER(__register_frame_info, (const void *begin, void *object), (begin, object))
REGISTER(__register_frame_info_table, (void *begin, void *object), (begin, object))
REGISTER(__register_frame_info_bases, (const void *begin, void *object, void *text, void *data),
         (begin, object, text, data))
REGISTER(__register_frame_info_table_bases, (void *begin, void *object, void *text, void *data),
         (begin, object, text, data))
REGISTER(__deregister_frame, (void *begin), (begin))

#define DEREGISTER(name)                                                                           \
    EXPORT void *name(const void *begin);                                                          \
    void *name(const void *begin)                                                                  \
    {                                                                                              \
        begin_registration();                                                                      \
        void *object = real_##name(begin);                                                         \
        end_registration();                                                                        \
        return object;                                                                             \
    }

DEREGISTER(__deregister_frame_info)
DEREGISTER(__deregister_frame_info_bases)
