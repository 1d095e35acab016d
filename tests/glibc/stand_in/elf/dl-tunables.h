/* Reads a setting of the dynamic linker, which glibc alone can see: none is set here. */
#define TUNABLE_GET_FULL(...) 0
