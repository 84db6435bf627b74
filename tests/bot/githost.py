"""Real bare repositories behind git's own `git http-backend` and a token, over HTTP on this machine."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

GIT_PATH = re.compile(r"/(.+?)\.git(/(?:info/refs|git-upload-pack|git-receive-pack))")
PLAIN = re.compile(r"refs/[\w/-]+")


def git(folder: Path, *arguments: str, ok: bool = True, data: bytes = b"") -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], input=data, capture_output=True, check=False)
    assert not ok or done.returncode == 0, done.stderr.decode()
    return os.fsdecode(done.stdout).rstrip("\n")


def import_commit(repo: Path, branch: str, files: Mapping[str, bytes], message: str, *, parent: str = "") -> str:
    """A commit by a person on a branch of a bare repository, its files beside those that are there."""
    who = b"Ada <ada@example.test> 1700000000 +0000"
    out = [b"commit refs/heads/%s\ncommitter %s\ndata %d\n%s\n" % (branch.encode(), who, len(message), message.encode())]
    if parent:
        out.append(f"from {parent}\n".encode())
    for name, content in files.items():
        out.append(b"M 100644 inline %s\ndata %d\n%s\n" % (os.fsencode(name), len(content), content))
    git(repo, "fast-import", "--quiet", "--force", data=b"".join(out))
    return stands_at(repo, f"refs/heads/{branch}")


def stands_at(repo: Path, ref: str) -> str:
    """The commit of a reference by its full name, "" without one. Read as git writes it: it is asked for thousands of times."""
    if PLAIN.fullmatch(ref) and not (repo / "packed-refs").exists():
        file = repo / ref
        return file.read_text().strip() if file.is_file() else ""
    return git(repo, "rev-parse", "--verify", "-q", ref, ok=False)


@cache
def programs() -> Path:
    """Where git has the programs that stand behind its commands."""
    return Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip())


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Who is killed says no goodbye: that is no error of the server."""


class GitHost:
    """An HTTP server with repositories. What is not git's goes to `answer`, which a subclass has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[tuple[str, bytes], ...], Path] = {}
        self.log: list[tuple[str, str]] = []
        self.sizes: list[int] = [0]
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *arguments: object) -> None:
                pass

            def _any(self) -> None:
                body = _body(self)
                host.log.append((self.command, self.path))
                host.sizes.append(len(body))
                match = GIT_PATH.match(self.path.partition("?")[0])
                if match and (host.folder / f"{match[1]}.git").is_dir():
                    host._git(self, match[1], match[2], body)
                else:
                    host.answer(self, body)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _any

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        raise NotImplementedError

    def may(self, token: str, slug: str, *, push: bool) -> int:
        """200, or 401 and 403 where a token is not taken."""
        raise NotImplementedError

    def repository(self, slug: str) -> Path:
        return self.folder / f"{slug}.git"

    def create(self, slug: str, files: Mapping[str, bytes]) -> Path:
        """A repository; one of the same files is copied as it was when it was made."""
        repo, key = self.repository(slug), tuple(files.items())
        if repo.exists():
            return self._made(repo, files)
        if key not in self.made:
            self.made[key] = self._made(self.folder.with_name(f"{self.folder.name}-{len(self.made)}.git"), files)
        shutil.copytree(self.made[key], repo)
        return repo

    def _made(self, repo: Path, files: Mapping[str, bytes]) -> Path:
        subprocess.run(["git", "init", "-q", "--bare", "--template=", "-b", "main", str(repo)], check=True)
        with (repo / "config").open("a") as config:
            config.write("[http]\n receivepack = true\n[uploadpack]\n allowFilter = true\n allowAnySHA1InWant = true\n")
        if files:
            import_commit(repo, "main", files, "first")
        return repo

    def tip(self, slug: str, ref: str) -> str:
        return stands_at(self.repository(slug), ref)

    def _git(self, request: BaseHTTPRequestHandler, slug: str, path: str, body: bytes) -> None:
        query = request.path.partition("?")[2]
        push = "receive-pack" in path or "receive-pack" in query
        status = self.may(token_of(request.headers.get("Authorization", "")), slug, push=push)
        if status != 200:
            return send(request, status, b"", {"WWW-Authenticate": 'Basic realm="test"'})
        env = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.folder), "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{slug}.git{path}", "QUERY_STRING": query, "REQUEST_METHOD": request.command,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)), "REMOTE_USER": "someone",
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""), "REMOTE_ADDR": "127.0.0.1",
        }  # fmt: skip
        out = subprocess.run([programs() / "git-http-backend"], input=body, env=env, capture_output=True, check=True).stdout
        head, _, content = out.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        return send(request, int(headers.pop("Status", "200").split()[0]), content, headers)


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length") or 0))
    parts = []
    while size := int(request.rfile.readline().split(b";")[0], 16):
        parts.append(request.rfile.read(size))
        request.rfile.readline()
    request.rfile.readline()
    return b"".join(parts)


def send(request: BaseHTTPRequestHandler, status: int, content: bytes, headers: Mapping[str, str]) -> None:
    request.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(content))}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(content)


def token_of(authorization: str) -> str:
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "basic":
        return base64.b64decode(value).decode().partition(":")[2]
    return value
