"""Root file systems of Debian that have python3 and nothing else, and commands inside them.

A command runs in namespaces of its own: it sees no file and no process of this machine. Only root
can make a root file system, because its files belong to several users.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from locktop.collector.errors import LocktopError

ROOT = Path(__file__).parents[2]
#: debootstrap's cache of what it made; a root file system takes two minutes.
CACHE = ROOT / "build" / "root-file-systems"
RELEASE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
#: Pythons other than that of the release would need another pip wheelhouse.
PYTHON = "3.11"
EMULATOR = "/usr/bin/qemu-aarch64-static"
#: Debian's name of an architecture -> that of Linux
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}

_INSIDE = """
set -e
root=$1 layer=$2 emulator=$3; shift 3
if [ -n "$emulator" ]; then
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    # The first 20 bytes of an ELF file for aarch64. F: opened here, P: argv[0] is kept.
    magic='\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00'
    ff='\\xff\\xff\\xff\\xff'
    mask="$ff\\xff\\xff\\xff\\x00$ff$ff\\xfe\\xff\\xff\\xff"
    printf '%s' ":arm64:M::$magic:$mask:$emulator:FP" > /proc/sys/fs/binfmt_misc/register
fi
mount -t tmpfs none "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay -o "lowerdir=$root,upperdir=$layer/upper,workdir=$layer/work" none "$layer/root"
cp -a "$layer.files/." "$layer/root/"
cd "$layer/root"
mount -t proc none proc
mount -t tmpfs none dev
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=666 none dev/pts
ln -s pts/ptmx dev/ptmx
for device in null zero urandom; do
    touch dev/$device; mount --bind /dev/$device dev/$device
done
exec chroot . env -i HOME=/root PATH=/usr/bin:/bin TERM=xterm-256color LANG=C.UTF-8 "$@"
"""


def made(architecture: str) -> Path:
    """Return the directory of a root file system, after making it if there is none.

    Args:
        architecture: a key of MACHINES.

    Raises:
        LocktopError: the machine cannot make it; says what is missing.
    """
    if os.geteuid() != 0:
        raise LocktopError("a root file system needs root")
    if not shutil.which("debootstrap"):
        raise LocktopError("no debootstrap; install the package debootstrap")
    if architecture != "amd64" and not Path(EMULATOR).exists():
        raise LocktopError(f"no {EMULATOR}; install the package qemu-user-static")
    directory = CACHE / architecture
    if not directory.exists():
        unfinished = CACHE / f"{architecture}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        _unpack_packages(architecture, unfinished)
        unfinished.rename(directory)
    return directory


def _unpack_packages(architecture: str, directory: Path) -> None:
    """Unpack the packages, without the scripts that configure them: python3 needs none of those.

    So another architecture takes no emulator, which would take many minutes.
    """
    options = ["--foreign", f"--arch={architecture}", "--variant=minbase"]
    options.append("--include=python3-venv")
    subprocess.run(["debootstrap", *options, RELEASE, str(directory), MIRROR], check=True)
    for package in sorted((directory / "var/cache/apt/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(directory)], check=True)
        package.unlink()
    (directory / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")


def run(
    architecture: str, files: Path, command: list[str], *, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command as root in a root file system of its own.

    Args:
        architecture: a key of MACHINES.
        files: a directory; its content is copied into the root.
        command: what to run there.
        timeout_s: the longest time for it, seconds.

    Raises:
        LocktopError: the machine cannot make the root file system.
        subprocess.TimeoutExpired: the command takes too long.
    """
    root = made(architecture)
    layer = files.with_suffix(".layer")
    layer.mkdir()
    files.rename(layer.with_suffix(".layer.files"))
    emulator = "" if architecture == "amd64" else EMULATOR
    # The parent shell waits until the user namespace has its ids.
    waiting = 'read _; exec unshare --mount --pid --fork --kill-child --ipc --net sh -c "$@"'
    process = subprocess.Popen(
        [
            *("unshare", "--user", "sh", "-c", waiting, "-"),
            *(_INSIDE, "-", str(root), str(layer), emulator, *command),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _map_all_ids(process.pid)
        output, errors = process.communicate("go\n", timeout_s)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _map_all_ids(pid: int) -> None:
    """Give the user namespace of a process all users and groups, as soon as it has one."""
    ours = os.readlink("/proc/self/ns/user")
    while os.readlink(f"/proc/{pid}/ns/user") == ours:
        os.sched_yield()
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{name}").write_text("0 0 65536")
