"""What watching costs on this machine: the benchmark program with and without the library."""
