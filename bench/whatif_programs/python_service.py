"""A service of threads that answers HTTP requests from a database, for service.py.

    python python_service.py THREADS CONNECTIONS ROWS

Each request asks a slow backend, and then the database. CONNECTIONS database connections serve all
threads, so the mutexes of SQLite's connections are the locks. A query reads ROWS rows. Each thread
accepts connections on its own: nobody hands requests over. For each line of stdin the service
says how many requests it answered.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count

_BACKEND_S = 0.004
_QUERY = "select sum(length(text) + id % 7) from lines where id <= ?"


class _Counter:
    """The requests that are answered."""

    def __init__(self) -> None:
        self._numbers = count()

    def add(self) -> None:
        next(self._numbers)  # no other thread runs meanwhile: no lock is needed

    def read(self) -> int:
        return int(repr(self._numbers)[6:-1])


def _database(rows: int) -> sqlite3.Connection:
    found = sqlite3.connect(":memory:", check_same_thread=False)
    found.execute("create table lines (id integer primary key, text text)")
    found.executemany("insert into lines values (?, ?)", ((n, "line" * 8) for n in range(rows)))
    found.commit()
    return found


def main(threads: int, connections: int, rows: int) -> None:
    databases = [_database(rows) for _ in range(connections)]
    answered = _Counter()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet an answer
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            time.sleep(_BACKEND_S)
            database = databases[hash(time.perf_counter_ns()) % connections]
            text = str(database.execute(_QUERY, (rows,)).fetchone()[0]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            answered.add()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.socket.listen(128)

    def serve() -> None:
        while True:
            connection, address = server.socket.accept()
            Handler(connection, address, server)

    for _ in range(threads):
        threading.Thread(target=serve, daemon=True).start()
    print("ready", server.server_address[1], flush=True)
    for _ in sys.stdin:
        print(answered.read(), flush=True)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
