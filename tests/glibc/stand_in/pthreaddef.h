/* The alignment of a thread's control block on x86-64. */
#define TCB_ALIGNMENT 64
