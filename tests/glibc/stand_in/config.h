/* Made by glibc's configure; what the tests ask of it is in prelude.h. */
