"""The README's commands on fresh machines: `make demo`, `make test` and `make dist` in new systems.

    python -m install.fresh_machines [--releases bookworm,trixie,sid] [--users root,user]
        [--parts demo,test,dist]

Each release of Debian gets a root file system with the packages that the README names, and nothing
else. The directory build/fresh-machines keeps these systems. Each part runs in a fresh clone,
as a user of its own, without PYTHONUNBUFFERED. The table at the end says what passed. The output of
each part is in a file beside it. As in `.ci/run`, a test that fails runs once more, alone. This
needs root, debootstrap and a network.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyte

from install.root_file_system import MIRROR, ROOT

WORK = ROOT / "build" / "fresh-machines"
PACKAGES = "python3,python3-venv,gcc,libc6-dev,make"
#: From the host: names of servers and certificates, and pip's settings, if there are some.
_HOST_FILES = ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt")
_USER_ID = 1000
_COLUMNS, _LINES = 80, 24
#: The head of the list of locks, which the screen of the demonstration shows.
_DRAWN = "waited"
#: A busy machine needs an hour and more for the tests.
_LIMIT_S = 3 * 3600.0

#: The root is changed by pivot_root: after a mere chroot no program can make its mounts private.
_INSIDE = """
set -e
root=$1 user=$2; shift 2
mount --bind "$root" "$root"
mount -t proc none "$root/proc"
mount -t sysfs none "$root/sys"
mount -t tmpfs none "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
chmod 1777 "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 none "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for device in null zero full urandom tty; do
    touch "$root/dev/$device"; mount --bind /dev/$device "$root/dev/$device"
done
cd "$root"
pivot_root . .
umount -l .
cd "$DIRECTORY"
exec setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
"""


def made(release: str) -> Path:
    """Return the root file system of a release, after making it if there is none."""
    directory = WORK / release
    if not directory.exists():
        unfinished = WORK / f"{release}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        WORK.mkdir(parents=True, exist_ok=True)
        options = ["--variant=minbase", f"--include={PACKAGES}"]
        subprocess.run(["debootstrap", *options, release, str(unfinished), MIRROR], check=True)
        for name in _HOST_FILES:
            target = unfinished / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copy(Path("/") / name, target)
        (unfinished / "etc" / "hosts").write_text("127.0.0.1 localhost\n")  # as an installer does
        add_user = ["useradd", "--create-home", f"--uid={_USER_ID}", "user"]
        subprocess.run(["chroot", str(unfinished), *add_user], check=True)
        unfinished.rename(directory)
    return directory


def clone(root: Path, user: str) -> str:
    """Clone this repository into the home of a user; return the path within the root."""
    home = "/root" if user == "root" else "/home/user"
    checkout = root / home.lstrip("/") / "locktop"
    shutil.rmtree(checkout, ignore_errors=True)
    checkout.parent.mkdir(parents=True, exist_ok=True)
    command = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(checkout)]
    subprocess.run(command, check=True)
    if user != "root":
        owner = f"{_USER_ID}:{_USER_ID}"
        subprocess.run(["chown", "-R", owner, str(checkout.parent)], check=True)
    return f"{home}/locktop"


def command_in(
    root: Path, directory: str, user: str, *command: str
) -> tuple[list[str], dict[str, str]]:
    """Return a command that runs in a root file system, and its environment."""
    identity = "0" if user == "root" else str(_USER_ID)
    kept = ("PIP_", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if name.startswith(kept)}
    environment |= {
        "DIRECTORY": directory,
        "HOME": str(Path(directory).parent),
        "LANG": "C.UTF-8",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "TERM": "xterm-256color",
    }
    namespaces = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child"]
    return [*namespaces, "sh", "-c", _INSIDE, "-", str(root), identity, *command], environment


def runs(command: list[str], environment: dict[str, str], log: Path) -> bool:
    """Return whether a command passes; its output goes to a file."""
    with log.open("wb") as output:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, timeout=_LIMIT_S, check=False,
        )  # fmt: skip
    return done.returncode == 0


def shows_demo(command: list[str], environment: dict[str, str], log: Path) -> bool:
    """Return whether the demonstration says something in its first second, and draws its screen.

    The picture goes to a file. The key q must end the screen with status 0.
    """
    screen = pyte.Screen(_COLUMNS, _LINES)
    stream = pyte.ByteStream(screen)
    begin = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(command[0], command, environment)
    first_s, drawn = None, False
    while time.monotonic() < begin + _LIMIT_S:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # the terminal has no writer left
            break
        first_s = first_s if first_s is not None else time.monotonic() - begin
        stream.feed(data)
        if not drawn and any(_DRAWN in line for line in screen.display):
            drawn = True
            log.write_text("\n".join(line.rstrip() for line in screen.display) + "\n")
            os.write(terminal, b"q")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not drawn:
        log.write_text("\n".join(screen.display))
    return drawn and status == 0 and first_s is not None and first_s < 1.0


def main() -> int:
    """Run the chosen parts; return 1 if one of them fails."""
    parser = argparse.ArgumentParser(description="the README's commands on fresh machines")
    parser.add_argument("--releases", default="bookworm,trixie,sid")
    parser.add_argument("--users", default="root,user")
    parser.add_argument("--parts", default="demo,test,dist")
    arguments = parser.parse_args()
    rows = []
    for release in arguments.releases.split(","):
        root = made(release)
        for user in arguments.users.split(","):
            directory = clone(root, user)
            for part in arguments.parts.split(","):
                log = WORK / f"{release}-{user}-{part}.log"
                make = ["make", part, *(["REPEAT=1"] if part == "test" else [])]
                command, environment = command_in(root, directory, user, *make)
                begin = time.monotonic()
                passed = (shows_demo if part == "demo" else runs)(command, environment, log)
                minutes = (time.monotonic() - begin) / 60
                rows.append((release, user, part, passed, minutes))
                print(f"{release} {user} make {part}: {'passed' if passed else log}", flush=True)
    print("\n| Debian | user | `make` | result | minutes |\n|---|---|---|---|---|")
    for release, user, part, passed, minutes in rows:
        print(
            f"| {release} | {user} | {part} | {'passed' if passed else 'failed'} | {minutes:.1f} |"
        )
    return 0 if all(passed for *_, passed, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
