"""Start locktop.pyz: say in one line why it cannot start, or unpack it and run it.

release/single_file.py puts this module into the file. An old Python must be able to read the
module, if only to say that it is too old.
"""

import os
import platform
import sys


def start(python, machine):
    """Run locktop, or exit with status 2.

    Args:
        python: the version for which the file has compiled modules, as (3, 11).
        machine: the machine for which it has them, as platform.machine() says.
    """
    _check_interpreter(python, machine)
    try:
        _unpack()
    except (OSError, RuntimeError) as error:
        _fail(f"cannot unpack its files: {error}. Set SHIV_ROOT to a directory that you can write")
    from _bootstrap import bootstrap

    bootstrap()


def _check_interpreter(python, machine):
    version = ".".join(map(str, python))
    if sys.version_info[:2] != python:
        _fail(
            "this file is for Python {}, and {} is Python {}.{}. Run: python{} {}".format(
                version, sys.executable, *sys.version_info[:2], version, sys.argv[0]
            )
        )
    if platform.machine() != machine:
        _fail(f"this file is for {machine}, and this machine is {platform.machine()}")
    if platform.libc_ver()[0] != "glibc":
        _fail(f"this file is for Linux with glibc, and {sys.executable} uses another libc")


def _unpack():
    """Unpack into SHIV_ROOT, unless an earlier start did. Raises OSError, RuntimeError."""
    from _bootstrap import cache_path, current_zipfile, extract_site_packages
    from _bootstrap.environment import Environment

    with current_zipfile() as archive:
        env = Environment.from_json(archive.read("environment.json").decode())
        directory = cache_path(archive, env.root, env.build_id)
        if not (directory / "site-packages").exists():
            extract_site_packages(archive, directory, env.compile_pyc, env.compile_workers)
        check_directory(str(directory))


def check_directory(directory):
    """Exit if another user could change the code, or if the code cannot run there."""
    status = os.stat(directory)
    if status.st_uid not in (0, os.geteuid()):
        _fail(f"{directory} belongs to another user. Set SHIV_ROOT to a directory of yours")
    if status.st_mode & 0o002:
        _fail(f"anybody may write to {directory}. Run: chmod o-w {directory}")
    if os.statvfs(directory).f_flag & os.ST_NOEXEC:
        _fail(f"{directory} is mounted noexec. Set SHIV_ROOT to another directory")


def _fail(reason):
    sys.stderr.write("locktop: {}.\n".format(reason.rstrip(".")))
    sys.exit(2)
