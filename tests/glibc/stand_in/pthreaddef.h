/* Of a machine: how a thread's control block is aligned, on x86-64. */
#define TCB_ALIGNMENT 64
