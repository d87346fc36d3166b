"""A model hub on the loopback: as much of its HTTP interface as publishing and fetching takes.

Files named ``*.safetensors`` go through the protocol for large files, as on the real hub. Models
are in memory.
"""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TOKEN = "hf_test"


@dataclass
class Hub:
    """What was published: by the model's name its files, and its commits."""

    address: str = ""
    models: dict[str, dict[str, bytes]] = field(default_factory=dict)
    commits: dict[str, list[str]] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@contextmanager
def running() -> Iterator[Hub]:
    hub = Hub()

    class Handler(_Handler):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    served: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        hub, path, body = self.served, self._path(), self._body()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._json({"error": "who are you?"}, 401)
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            known = name in hub.models
            hub.models.setdefault(name, {})
            self._json({"url": f"{hub.address}/{name}"}, 409 if known else 200)
        elif found := re.fullmatch(r"/api/models/(.+)/preupload/main", path):
            modes = {True: "lfs", False: "regular"}
            files = [file["path"] for file in json.loads(body)["files"]]
            rows = [
                {"path": f, "uploadMode": modes[f.endswith(".safetensors")], "shouldIgnore": False}
                for f in files
            ]
            self._json({"files": rows})
        elif re.fullmatch(r"/.+\.git/info/lfs/objects/batch", path):
            objects = [
                {**one, "actions": {"upload": {"href": f"{hub.address}/large/{one['oid']}"}}}
                for one in json.loads(body)["objects"]
            ]
            self._json({"transfer": "basic", "objects": objects})
        elif found := re.fullmatch(r"/api/models/(.+)/commit/main", path):
            self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        else:
            self._json({"error": path}, 404)

    def do_PUT(self) -> None:
        content = self._body()
        oid = self._path().removeprefix("/large/")
        assert hashlib.sha256(content).hexdigest() == oid
        self.served.large[oid] = content
        self._json({})

    def do_GET(self) -> None:
        self._give()

    def do_HEAD(self) -> None:
        self._give()

    def _commit(self, name: str, rows: list[dict]) -> None:
        hub = self.served
        for row in rows:
            value = row["value"]
            if row["key"] == "file":
                hub.models[name][value["path"]] = base64.b64decode(value["content"])
            elif row["key"] == "lfsFile":
                hub.models[name][value["path"]] = hub.large[value["oid"]]
        commit = hashlib.sha1(repr(sorted(hub.models[name].items())).encode()).hexdigest()
        hub.commits.setdefault(name, []).append(commit)
        url = f"{hub.address}/{name}/commit/{commit}"
        self._json({"commitUrl": url, "commitOid": commit})

    def _give(self) -> None:
        hub, path = self.served, self._path()
        found = re.fullmatch(r"/api/models/(\w+/[\w-]+)(?:/(revision|tree)/(\w+))?", path)
        if found is not None and found[1] in hub.commits:
            files, commit = hub.models[found[1]], hub.commits[found[1]][-1]
            if found[2] == "tree":
                self._json([_row(name, files[name]) for name in sorted(files)])
            else:
                rows = [{"rfilename": name} for name in files]
                self._json({"id": found[1], "sha": commit, "siblings": rows})
            return
        found = re.fullmatch(r"/(\w+/[\w-]+)/resolve/(\w+)/(.+)", path)
        content = hub.models.get(found[1], {}).get(found[3]) if found else None
        if found is None or content is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("X-Repo-Commit", hub.commits[found[1]][-1])
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def _path(self) -> str:
        path = urlsplit(self.path).path
        self.served.requests.append(f"{self.command} {path}")
        return path

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _json(self, answer: object, status: int = 200) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _row(name: str, content: bytes) -> dict:
    digest = hashlib.sha256(content).hexdigest()
    row = {"type": "file", "path": name, "size": len(content), "oid": digest[:40]}
    if name.endswith(".safetensors"):
        row["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 130}
    return row
