/* Reads a setting of the dynamic linker, which only glibc can see. Here no setting is set. */
#define TUNABLE_GET_FULL(...) 0
