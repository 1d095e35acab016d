"""Builds a C++ program with a given amount of debug information, in a minute or two.

The compiler makes two different units. The linker takes each unit many times, with another name of
its one global function each time. At run time, a thread calls through 13 units and prints the
return addresses of its stack. The thread then waits there for a lock until the input ends.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DEPTH = 13
_VARIANTS = 2
#: The part of an object file that stays in the program; the rest are relocations.
_LINKED_PART = 0.3

_UNIT = """\
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
extern "C" int next(int depth);
namespace {
#define BODY(n)                                                                           \\
    struct job##n { std::mutex mu; std::map<std::string, std::vector<int>> kept;          \\
        std::unordered_map<int, std::shared_ptr<std::string>> shared;                     \\
        int put(const std::string &key, int value)                                        \\
        {                                                                                 \\
            std::lock_guard<std::mutex> guard(mu);                                        \\
            auto add = [&](int one) { kept[key].push_back(one); return kept.size(); };    \\
            shared[value] = std::make_shared<std::string>(key + std::to_string(n));       \\
            std::vector<std::pair<int, std::string>> all;                                 \\
            for (auto &s : shared) all.emplace_back(s.first, *s.second);                  \\
            std::sort(all.begin(), all.end());                                            \\
            return add(value) + add(value + VARIANT) + all.size();                        \\
        }                                                                                 \\
    };                                                                                    \\
    __attribute__((noinline)) int run##n(const std::string &text)                         \\
    {                                                                                     \\
        static job##n one;                                                                \\
        std::stringstream stream(text);                                                   \\
        std::string word;                                                                 \\
        int sum = 0;                                                                      \\
        while (stream >> word) sum += one.put(word, n + VARIANT);                         \\
        return sum;                                                                       \\
    }
BODY(1) BODY(2) BODY(3) BODY(4)
inline __attribute__((always_inline)) int deeper(int depth)
{
    int below = next(depth - 1);
    return below + depth;
}
}
extern "C" int step(int depth)
{
    int sum = run1("a b") + run2("c") + run3("d") + run4("e");
    return deeper(depth) + sum;
}
"""

_MAIN = """\
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
enum { UNITS = %(units)d, DEPTH = %(depth)d };
%(declarations)s
static int (*const steps[UNITS])(int) = {%(names)s};
static void tell(void)
{
    void *found[64];
    int count = backtrace(found, 64);
    for (int n = 0; n < count; n++) printf("%%p ", found[n]);
    printf("\\n");
    fflush(stdout);
}
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
int next(int depth)
{
    if (!depth) {
        tell();
        return pthread_mutex_lock(&held);
    }
    return steps[(long)depth * (UNITS - 1) / DEPTH](depth) + 1;
}
static void *call(void *unused) { next(DEPTH); return unused; }
int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&held);
    pthread_create(&thread, NULL, call, NULL);
    return getchar();
}
"""


def build(directory: Path, megabytes: int) -> Path:
    """Build the program in a directory, unless it exists; return its path."""
    program = directory / f"big{megabytes}"
    if program.exists():
        return program
    (directory / "unit.cc").write_text(_UNIT)
    with ThreadPoolExecutor(2) as pool:
        variants = list(pool.map(lambda n: _compiled(directory, n), range(_VARIANTS)))
    size = sum(variant.stat().st_size for variant in variants) / _VARIANTS
    count = max(DEPTH + 1, int(megabytes * 1e6 / size / _LINKED_PART))
    objects = [_renamed(directory, variants[n % _VARIANTS], n) for n in range(count)]
    main = {
        "units": count,
        "depth": DEPTH,
        "declarations": "".join(f"int step{n}(int);\n" for n in range(count)),
        "names": ", ".join(f"step{n}" for n in range(count)),
    }
    (directory / "main.c").write_text(_MAIN % main)
    _run(directory, "cc", "-O2", "-g", "-D_GNU_SOURCE", "-c", "main.c")
    (directory / "objects").write_text("\n".join(objects))
    _run(directory, "c++", "-o", program.name, "main.o", "@objects", "-pthread")
    for name in objects:
        (directory / name).unlink()
    return program


def _compiled(directory: Path, variant: int) -> Path:
    name = f"variant{variant}.o"
    defined = f"-DVARIANT={variant}"
    _run(directory, "c++", "-O2", "-g", "-c", defined, "unit.cc", "-o", name, "-pthread")
    return directory / name


def _renamed(directory: Path, variant: Path, number: int) -> str:
    name = f"unit{number}.o"
    _run(directory, "objcopy", f"--redefine-sym=step=step{number}", variant.name, name)
    return name


def _run(directory: Path, *command: str) -> None:
    subprocess.run(command, cwd=directory, check=True)


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), int(sys.argv[2])))
