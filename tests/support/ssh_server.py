"""An sshd of OpenSSH on this machine, of the user of the tests."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
#: Where sshd of root changes its root to; the package of sshd makes the directory at boot.
_EMPTY_ROOT = Path("/run/sshd")
_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host
AuthorizedKeysFile {directory}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
SetEnv HOME={directory}
"""


class SshServer:
    """An sshd of this user that only this test can log in to.

    The home of a session is a directory of the test: its shell reads no file of the user.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
            subprocess.run(command, check=True)
        if os.getuid() == 0:
            _EMPTY_ROOT.mkdir(mode=0o755, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        config = directory / "config"
        config.write_text(_CONFIG.format(port=self._port, directory=directory))
        self._process = subprocess.Popen(
            [str(SSHD), "-D", "-e", "-f", str(config)], stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        assert "listening" in said, said + self._process.stderr.read()

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.communicate()

    def command(self, remote: str) -> list[str]:
        """The command that runs the shell line ``remote`` over SSH, on a terminal."""
        options = {
            "StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null", "LogLevel": "ERROR",
            "IdentitiesOnly": "yes",
        }  # fmt: skip
        return [
            "ssh", "-tt", "-F", "none", "-p", str(self._port), "-i", f"{self._directory}/user",
            *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
            f"{getpass.getuser()}@127.0.0.1", remote,
        ]  # fmt: skip
