/* glibc's description of a thread, which its build lays out: included, but not used. */
