"""Clients of python_service.py: http_load.py PORT CLIENTS. Each waits for its answer, then asks."""

from __future__ import annotations

import socket
import sys
import threading


def ask(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            server.sendall(b"GET / HTTP/1.1\r\n\r\n")
            server.recv(4096)


if __name__ == "__main__":
    for _ in range(int(sys.argv[2])):
        threading.Thread(target=ask, args=(int(sys.argv[1]),)).start()
