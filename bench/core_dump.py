"""Measure `locktop check` on a large sparse core: seconds, and bytes of memory.

Arguments: gigabytes of memory (default 14), further threads behind a deadlock (default 1000). The
kernel writes the core, so core_pattern must be the name of a file.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SOURCE = """\
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *one(void *x)
{
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&b);
    return x;
}
static void *two(void *x)
{
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a);
    return x;
}
static void *behind(void *x)
{
    pthread_mutex_lock(&a);
    return x;
}
int main(int count, char **words)
{
    const size_t size = 1ul << 30;
    pthread_t thread;

    for (int n = 0; n < atoi(words[1]); n++) {
        char *memory = mmap(0, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (size_t at = 0; at < size; at += 8 << 20)
            memory[at] = 1;
    }
    pthread_barrier_init(&both, 0, 3);
    pthread_create(&thread, 0, one, 0);
    pthread_create(&thread, 0, two, 0);
    pthread_barrier_wait(&both);
    for (int n = 0; n < atoi(words[2]); n++)
        pthread_create(&thread, 0, behind, 0);
    sleep(1);
    abort();
    return count;
}
"""


def main() -> None:
    """Print the figures of one core."""
    gigabytes, threads = (sys.argv[1:] + ["14", "1000"][len(sys.argv) - 1 :])[:2]
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        (directory / "big.c").write_text(_SOURCE)
        command = ["cc", "-O1", "-g", "-pthread", "-o", "big", "big.c"]
        subprocess.run(command, cwd=directory, check=True)
        unlimited = 'ulimit -c unlimited; exec ./big "$@"'
        subprocess.run(["sh", "-c", unlimited, "sh", gigabytes, threads], cwd=directory)
        (core,) = directory.glob("core*")
        about = os.stat(core)
        begun = time.monotonic()
        tool = [sys.executable, "-c", "from locktop.tui.cli import main; raise SystemExit(main())"]
        done = subprocess.run([*tool, "check", str(core), "--format", "line"], capture_output=True)
        took_s = time.monotonic() - begun
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(done.stdout.decode().strip())
    print(f"core of {about.st_size / 1e9:.1f} GB, {about.st_blocks * 512 / 1e6:.0f} MB on the disk")
    print(f"check: status {done.returncode}, {took_s:.1f} s, {memory / 1024:.0f} MB")


if __name__ == "__main__":
    main()
