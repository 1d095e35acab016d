# Builds for aarch64 with a cross compiler (Debian: gcc-aarch64-linux-gnu).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
# Programs that the build runs, such as Python, are those of this machine.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
