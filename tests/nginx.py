"""nginx for the tests, with the configuration that the page on serving shows; where it is not installed it is not used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests import processes

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "serve.md"
SITE = "study.example.org"
PROGRAM = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))


AWAY = 1  # seconds for which nginx does not ask a server that was gone, as a whole number; the page has more


def documented(home: Path, servers: list[int], port: int) -> str:
    """Return the configuration of the page, for servers at these ports, without encryption, and with its logs in ``home``."""
    found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    text, here = found.group(1), iter(servers)
    text, count = re.subn(r"server 10\.\S+", lambda _: f"server 127.0.0.1:{next(here)}", text)
    assert count == len(servers)
    text, count = re.subn(r"fail_timeout=5s", f"fail_timeout={AWAY}s", text)
    assert count == len(servers)
    text, count = re.subn(r"listen 443 ssl;|ssl_certificate\S* .*;", "", text)
    assert count == 3
    text, count = re.subn(r"/var/log/nginx/", f"{home}/", text)
    assert count == 2
    return text.replace(f"server_name {SITE};", f"listen 127.0.0.1:{port};\n    server_name {SITE};")


def started(home: Path, servers: list[int]) -> tuple[processes.Child, str]:
    """Return a running nginx in front of servers, and its address; end it after use."""
    assert PROGRAM is not None, "nginx is not installed"
    port = processes.reserved_port()
    folders = "".join(
        f"{kind}_temp_path {home}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    settings = home / "nginx.conf"
    settings.write_text(  # one process: several would change their environment, and lose the mark of the tests
        f"daemon off;\nmaster_process off;\npid {home}/pid;\nerror_log {home}/errors.txt info;\nevents {{}}\n"
        f"http {{\naccess_log {home}/requests.txt;\n{folders}{documented(home, servers, port)}}}\n",
        encoding="utf-8",
    )
    with (home / "output.txt").open("wb") as out:
        command = [PROGRAM, "-p", str(home), "-e", f"{home}/errors.txt", "-c", str(settings)]
        return processes.Child(command, stdout=out, stderr=subprocess.STDOUT), f"http://127.0.0.1:{port}"
