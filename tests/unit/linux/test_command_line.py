"""Tests which words name what a process runs, by its arguments."""

from __future__ import annotations

import pytest

from locktop.collector.linux.command_line import program_names, program_words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("/usr/bin/python3 /srv/app.py --port 80", "app.py --port 80"),
        ("/usr/bin/python3.13t -u -Werror -X dev app.py", "app.py"),
        ("python3 -Im http.server 80", "http.server 80"),
        ("/usr/bin/python3 -c code 80", "python3 -c code 80"),
        ("/usr/bin/python3", "python3"),
        ("/usr/bin/python3 -", "python3 -"),
        ("pypy3 app.py", "app.py"),
        ("/usr/bin/node --inspect -r ./trace.js /srv/server.js 80", "server.js 80"),
        ("node -e code", "node -e code"),
        ("/usr/bin/java -Xmx1g -cp /a:/b com.example.Main run", "com.example.Main run"),
        ("java -ea --add-opens java.base/java.io=ALL-UNNAMED -jar /srv/app.jar run", "app.jar run"),
        ("java --add-opens=java.base/java.io=ALL-UNNAMED @options -m mod/a.Main", "a.Main"),
        ("ruby -I lib -w /srv/job.rb 1", "job.rb 1"),
        ("ruby -ne code", "ruby -ne code"),
        ("/usr/bin/perl -w -I/lib job.pl 1", "job.pl 1"),
        ("/bin/sh -e /etc/run.sh start", "run.sh start"),
        ("bash -o pipefail +x run.sh", "run.sh"),
        ("bash -lc command", "bash -lc command"),
        ("-bash", "bash"),
        ("/usr/sbin/mariadbd --user=mysql", "mariadbd --user=mysql"),
        ("/usr/bin/shred file", "shred file"),
    ],
)
def test_the_script_replaces_its_interpreter(arguments: str, words: str) -> None:
    assert program_words(arguments.split()) == words.split()


def test_a_title_of_the_program_stays() -> None:
    title = "nginx: worker process /usr/sbin/nginx"
    assert program_words([title, "", ""]) == [title, "", ""]
    assert program_names("nginx", [title]) == {"nginx"}
    assert program_words([]) == []


def test_a_process_has_the_name_of_its_program_and_of_its_script() -> None:
    names = program_names("python3", ["/usr/bin/python3", "/srv/app.py"])
    assert names == {"python3", "app.py", "app"}
    assert program_names("mariadbd", ["/usr/sbin/mariadbd"]) == {"mariadbd"}
