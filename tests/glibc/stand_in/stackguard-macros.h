/* The guard values of a thread. glibc's own header gets their offsets from tls.h. */
#include <stdint.h>

#define GUARD_AT(offset)                                                                           \
    ({                                                                                             \
        uintptr_t guard;                                                                           \
        __asm__("mov %%fs:" offset ", %0" : "=r"(guard));                                          \
        guard;                                                                                     \
    })
#define STACK_CHK_GUARD GUARD_AT("0x28")
#define POINTER_CHK_GUARD GUARD_AT("0x30")
