import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from headstart.cli import app
from headstart.drafters.memory_log import read_memory_log
from headstart.errors import ServerRefusedError
from headstart_client.memory_client import MemoryClient


def run(tmp_path, rows, *options):
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "site.jsonl"
    result = CliRunner().invoke(app, ["train", "memory", str(file), str(out), *options])
    return result, out


def test_a_log_becomes_what_an_engine_reads(tmp_path):
    rows = [
        {"question": "who?", "target_tokens": [1, 2], "stream": "a", "draft_tokens": [9]},
        {"question": "what?", "target_tokens": [3], "tenant": "north"},
        {"question": "who?", "target_tokens": [4, 5]},
    ]
    result, out = run(tmp_path, rows)
    assert result.exit_code == 0, result.output
    assert "2 answers of no tenant" in result.stdout
    assert "1 answers of 'north'" in result.stdout
    assert f"{out.stat().st_size} bytes" in result.stdout.replace("\n", " ")
    answers = [(a.tenant, a.question, a.tokens) for a in read_memory_log(out)]
    assert answers == [("", "who?", (1, 2)), ("", "who?", (4, 5)), ("north", "what?", (3,))]


def test_all_of_it_may_be_given_to_one_tenant(tmp_path):
    rows = [{"question": "who?", "target_tokens": [1, 2], "tenant": name} for name in ("a", "b")]
    result, out = run(tmp_path, rows, "--tenant", "north")
    assert result.exit_code == 0, result.output
    assert [answer.tenant for answer in read_memory_log(out)] == ["north", "north"]


def test_a_log_of_text_needs_the_targets_tokenizer(tmp_path):
    pytest.importorskip("transformers")
    from headstart_lab.tokenizer import train_tokenizer

    rows = [{"question": "who?", "target_text": "the car"}]
    result, out = run(tmp_path, rows)
    assert result.exit_code == 1
    assert "line 1" in result.output
    assert "--tokenizer" in result.output
    assert not out.exists()
    tokenizer = train_tokenizer(["the car and the road"] * 4, 400, added_tokens=[])
    tokenizer.save_pretrained(tmp_path / "model")
    result, out = run(tmp_path, rows, "--tokenizer", str(tmp_path / "model"))
    assert result.exit_code == 0, result.output
    expected = tokenizer("the car", add_special_tokens=False)["input_ids"]
    assert [list(answer.tokens) for answer in read_memory_log(out)] == [expected]


def test_a_broken_row_is_named_by_its_line(tmp_path):
    rows = [{"question": "who?", "target_tokens": [1]}, {"question": "who?", "target_tokens": [-7]}]
    result, out = run(tmp_path, rows)
    assert result.exit_code == 1
    assert "line 2" in result.output
    assert not out.exists()


def test_collected_answers_become_one_too_but_not_those_that_measure(tmp_path):
    pytest.importorskip("pyarrow", reason="needs headstart[train]")
    from tests.evaluation.made_up import write_records

    streams = {"b": [{"what?": [3]}], "a": [{"what?": [1]}, {"what?": [2]}]}
    folder, out = write_records(tmp_path / "records", streams, source="lab"), tmp_path / "site"
    words = ["train", "memory", str(folder), str(out), "--tenant", "north"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    answers = [(answer.tenant, answer.tokens) for answer in read_memory_log(out)]
    assert answers == [("north", (1,)), ("north", (2,)), ("north", (3,))]
    out.unlink()
    words[2] = str(write_records(tmp_path / "held out", streams))
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "without --held-out" in " ".join(result.output.split())
    assert not out.exists()


class Routes(BaseHTTPRequestHandler):
    """Notes what is asked of it, and answers as the memory routes do."""

    asked: ClassVar[list[tuple[str, str, str, bytes]]] = []

    def _answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        self.asked.append((self.command, self.path, self.headers["authorization"], body))
        status, content = 200, b"sealed bytes"
        if "missing" in self.path:
            error = {"message": "nothing is remembered of this stream"}
            status, content = 404, json.dumps({"error": error}).encode()
        elif self.command == "POST":
            content = b'{"stream": "back", "from": "front", "answers": 7}'
        elif "/memory?limit=" in self.path:
            content = json.dumps(self._page()).encode()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(content)

    def _page(self):
        query = parse_qs(urlsplit(self.path).query)
        first = int(query.get("cursor", ["front -1"])[0].removeprefix("front ")) + 1
        last = min(first + min(int(query["limit"][0]), 2), 5)  # of five streams, two at most
        row = {"answers": 7, "bytes": 99, "stored_bytes": 5, "newest_s": 1e9}
        rows = [{**row, "stream": f"front {number}"} for number in range(first, last)]
        cursor = f"front {last - 1}" if last < 5 else None
        return {"data": rows, "cursor": cursor, "keep_days": 7.0}

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815

    def log_message(self, *arguments):
        pass


@pytest.fixture
def address():
    Routes.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Routes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def ask_server(address, *words):
    key = {"HEADSTART_KEY": "sk-north"}
    return CliRunner().invoke(app, ["memory", *words, "--url", address], env=key)


def test_a_server_is_asked_what_it_remembers(address):
    result = ask_server(address, "show")
    assert result.exit_code == 0, result.output
    for number in range(5):
        said = f"front {number}: 7 answers, 99 bytes, 5 stored, the last 2001-09-09"
        assert said in result.output
    assert "5 streams; answers are kept for 7 days" in result.output
    pages = ("", "&cursor=front+1", "&cursor=front+3")
    path = "/v1/headstart/memory?limit=1000"
    assert Routes.asked == [("GET", path + page, "Bearer sk-north", b"") for page in pages]
    assert len(MemoryClient(address).streams()["data"]) == 5


def test_a_stream_is_written_to_a_file_and_brought_under_another_name(address, tmp_path):
    file = tmp_path / "front.memory"
    result = ask_server(address, "export", "front door", str(file))
    assert result.exit_code == 0, result.output
    assert file.read_bytes() == b"sealed bytes"
    result = ask_server(address, "restore", "back", str(file))
    assert result.exit_code == 0, result.output
    assert "back remembers 7 answers of front" in result.output
    paths = [(method, path, body) for method, path, _, body in Routes.asked]
    assert paths == [
        ("GET", "/v1/headstart/memory/export?stream=front+door", b""),
        ("POST", "/v1/headstart/memory/import?stream=back", b"sealed bytes"),
    ]


def test_all_is_forgotten_only_where_that_is_said(address):
    assert ask_server(address, "forget", "front").exit_code == 0
    assert ask_server(address, "forget", "--all").exit_code == 0
    assert ask_server(address, "forget").exit_code != 0
    assert ask_server(address, "forget", "front", "--all").exit_code != 0
    assert [path for _, path, _, _ in Routes.asked] == [
        "/v1/headstart/memory?stream=front",
        "/v1/headstart/memory?all=true",
    ]


def test_a_key_goes_nowhere_else_whatever_a_server_says(address):
    class Redirects(BaseHTTPRequestHandler):
        status = 0

        def _answer(self):
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(self.status)
            self.send_header("Location", address.replace("127.0.0.1", "localhost") + self.path)
            self.end_headers()

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirects)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = MemoryClient(f"http://127.0.0.1:{server.server_port}", "sk-north")
    try:
        for Redirects.status in (301, 302, 303, 307, 308):
            for ask in (client.streams, client.forget_all, lambda: client.restore("front", b"x")):
                with pytest.raises(ServerRefusedError, match="ask http://localhost"):
                    ask()
    finally:
        server.shutdown()
        server.server_close()
    assert Routes.asked == []


def test_what_a_server_refuses_is_said(address, tmp_path):
    result = ask_server(address, "export", "missing", str(tmp_path / "file"))
    assert result.exit_code == 1
    assert "nothing is remembered of this stream" in result.output
    assert not (tmp_path / "file").exists()
    result = ask_server("http://127.0.0.1:9", "show")
    assert result.exit_code == 1
    assert "cannot be reached" in result.output
