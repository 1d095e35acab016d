"""Two daemons with one thread each, which call each other over Unix sockets.

The first one calls the second to answer a call, and the second one calls the first.
"""

from __future__ import annotations

import os
import socket
import socketserver
import tempfile

from process_scenarios import child, ready


def call(path):
    """Send a call to a daemon; return its answer."""
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(path)
        end.sendall(b"call\n")
        return end.makefile("rb").readline()


def daemon(path, other):
    """Return a daemon that listens, and calls another one for each of its answers."""

    class Answer(socketserver.StreamRequestHandler):
        def handle(self):
            self.rfile.readline()
            self.wfile.write(call(other))

    return socketserver.UnixStreamServer(path, Answer)


def main():
    """Run both daemons and a client."""
    directory = tempfile.mkdtemp()
    paths = [os.path.join(directory, name) for name in ("first", "second")]
    first, second = daemon(*paths), daemon(*paths[::-1])

    def serve_second():
        first.server_close()
        second.serve_forever()

    def be_client():
        second.server_close()
        first.server_close()
        call(paths[0])

    child(serve_second)
    child(be_client)
    second.server_close()
    ready()
    first.serve_forever()


if __name__ == "__main__":
    main()
