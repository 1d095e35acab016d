/* glibc's description of a thread. The tests include this header, but do not use it. */
