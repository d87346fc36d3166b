"""Hostile requests: does one of them cause a 500, a path or a trace in the answer, or a crash?

    python -m tests.soak.serve_fuzz --requests 10000

Made by hand: valid requests with parts replaced, cut, repeated and nested, rubbish as video and as
events, odd headers and paths; and schemathesis against our own schema where it is installed. Prints
the findings, then one line of JSON, which is also kept in benchmarks/results; exits with 1 if there
are any.
"""

import argparse
import base64
import copy
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from rig.servers import MODEL, asking, with_events
from rig.serving import Server, add_arguments, keep, running, workspace

AT_ONCE = 8
BATCH = 200  # requests held in memory at a time
NOT_SENT = 0
SECRETS = ("Traceback", "site-packages", 'File "', "/tmp/", "/home/", "/root/", "key-fuzz")
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.5, -0.0, 1e308, 5e-324,
    float("nan"), float("inf"), "", " ", "x", "\x00", "\ud800", "é" * 50, "A" * 10_000, "../../etc",
    [], [[]], [None], {}, {"": {}}, {"type": "text"}, {"url": "file:///etc/passwd"},
    [{"type": "text", "text": None}], "data:,", "data:video/mp4;base64,", "http://127.0.0.1/",
    {"$ref": "#"}, "{{ 7 * 7 }}", "<video>", "<video>" * 40, "<image>", ["<s>"] * 100,
]  # fmt: skip
FIELDS = [
    "model",
    "messages",
    "max_tokens",
    "temperature",
    "stream",
    "stream_options",
    "n",
    "seed",
    "stop",
    "logprobs",
    "top_logprobs",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "user",
    "tools",
    "tool_choice",
    "response_format",
    "structured_outputs",
    "echo",
    "add_generation_prompt",
    "chat_template",
    "continue_final_message",
    "chat_template_kwargs",
    "documents",
    "mm_processor_kwargs",
    "media_io_kwargs",
    "cache_salt",
    "vllm_xargs",
    "kv_transfer_params",
    "priority",
    "request_id",
    "return_token_ids",
    "prompt_logprobs",
    "truncate_prompt_tokens",
    "min_tokens",
    "ignore_eos",
    "bad_words",
    "allowed_token_ids",
    "stop_token_ids",
    "include_stop_str_in_output",
    "skip_special_tokens",
    "use_beam_search",
    "length_penalty",
    "best_of",
    "logits_processors",
    "parallel_tool_calls",
    "reasoning_effort",
    "headstart",
    "prompt",
    "suffix",
    "prompt_embeds",
    "prediction",
    "session_id",
]
PATHS = [
    "/v1/chat/completions",
    "/v1/completions",
    "/tokenize",
    "/detokenize",
    "/v1/headstart/events",
    "/v1/models",
    "/invocations",
    "/v1/responses",
    "/v1/embeddings",
    "/collective_rpc",
    "/sleep",
    "/v1/load_lora_adapter",
    "/pause",
    "/scale_elastic_ep",
    "/server_info",
    "/metrics",
    "/ready",
    "/health",
    "/",
    "/demo",
    "/demo/x",
    "/v1/headstart/events/x",
]


class Maker:
    """Makes one request after another from a seed."""

    def __init__(self, seed: int, videos: list[Path]) -> None:
        self._chance = random.Random(seed)
        self._videos = videos
        self._url = asking(videos[0], "")["messages"][0]["content"][0]["video_url"]["url"]

    def make(self) -> dict[str, Any]:
        """Arguments for a client's request."""
        kind = self._chance.random()
        if kind < 0.70:
            path = "/v1/chat/completions"
            body = self._spoiled(self._right())
        elif kind < 0.80:
            path = self._chance.choice(("/v1/completions", "/tokenize", "/detokenize"))
            body = self._spoiled({"model": MODEL, "prompt": "a", "max_tokens": 2, "tokens": [5]})
        elif kind < 0.90:
            return self._upload()
        else:
            return self._stray()
        return {"method": "POST", "url": path, **self._sent(body)}

    def _right(self) -> dict[str, Any]:
        body = asking(self._url, "What?", max_tokens=2)
        if self._chance.random() < 0.5:
            body["headstart"] = {"stream": "s", "preview": True, "timeline": True}
        if self._chance.random() < 0.4:
            body = with_events(body, url=self._events_url(), start_us=200_000, stop_us=280_000)
        if self._chance.random() < 0.3:
            body["stream"] = True
        return body

    def _events_url(self) -> str:
        path = self._chance.choice(self._videos).with_suffix(".npz")
        if self._chance.random() < 0.5:
            return path.as_uri()
        return "data:;base64," + base64.b64encode(self._damaged(path)).decode()

    def _damaged(self, path: Path) -> bytes:
        content = bytearray(path.read_bytes())
        for _ in range(self._chance.randrange(20)):
            content[self._chance.randrange(len(content))] = self._chance.randrange(256)
        return bytes(content[: self._chance.randrange(1, len(content))])

    def _spoiled(self, body: dict[str, Any]) -> Any:
        for _ in range(self._chance.randrange(1, 4)):
            match self._chance.randrange(6):
                case 0:
                    body[self._chance.choice(FIELDS)] = self._odd()
                case 1 | 2:
                    body = self._replaced(body)
                case 3:
                    video = self._damaged(self._chance.choice(self._videos))
                    kind = self._chance.choice(
                        ("video/mp4", "video/jpeg", "image/png", "text/plain")
                    )
                    url = f"data:{kind};base64,{base64.b64encode(video).decode()}"
                    if isinstance(body, dict) and "messages" in body:
                        body["messages"] = asking(url, "What?")["messages"]
                case 4:
                    if isinstance(body, dict):
                        body.pop(self._chance.choice(list(body) or [""]), None)
                case 5:
                    deep: Any = self._odd()
                    for _ in range(self._chance.choice((3, 50, 900))):
                        deep = [deep] if self._chance.random() < 0.5 else {"content": deep}
                    body[self._chance.choice(FIELDS)] = deep
            if not isinstance(body, dict):
                break
        return body

    def _replaced(self, body: Any) -> Any:
        """Replace one value, anywhere in the body, by an odd one."""
        places: list[tuple[Any, Any]] = []
        waiting = [body]
        while waiting:
            item = waiting.pop()
            inner = item.items() if isinstance(item, dict) else enumerate(item)
            for key, value in inner:
                places.append((item, key))
                if isinstance(value, dict | list):
                    waiting.append(value)
        if places:
            container, key = self._chance.choice(places)
            container[key] = self._odd()
        return body

    def _odd(self) -> Any:
        return copy.deepcopy(self._chance.choice(ODD))

    def _sent(self, body: Any) -> dict[str, Any]:
        content = json.dumps(body).encode()
        if self._chance.random() < 0.1:
            content = content[: self._chance.randrange(len(content) + 1)]
        if self._chance.random() < 0.05:
            content = content.replace(b'"', b"\xff\xfe", 1)
        kind = "application/json" if self._chance.random() < 0.95 else "text/html"
        return {"content": content, "headers": {"content-type": kind, **self._headers()}}

    def _headers(self) -> dict[str, str]:
        if self._chance.random() < 0.8:
            return {}
        odd = ("x" * 5000, "../../x", "a b", "", "%00", "{}", "-1")
        names = ("x-request-id", "x-data-parallel-rank", "traceparent", "x-session-id", "accept")
        return {self._chance.choice(names): self._chance.choice(odd)}

    def _upload(self) -> dict[str, Any]:
        path = self._chance.choice(self._videos).with_suffix(".npz")
        content = self._damaged(path) if self._chance.random() < 0.7 else self._chance.randbytes(99)
        odd = ("csv", "raw", "dat", "npz", "", "exe", "../x", "x" * 999)
        return {
            "method": "POST",
            "url": "/v1/headstart/events",
            "content": content,
            "params": {"format": self._chance.choice(odd)} if self._chance.random() < 0.5 else {},
        }

    def _stray(self) -> dict[str, Any]:
        method = self._chance.choice(("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"))
        path = self._chance.choice(PATHS)
        if self._chance.random() < 0.5:
            path += self._chance.choice(
                ("/", "//", "/..", "%2f..", "?a=b&a=c", "/x" * 500, ";x", "%00")
            )
        return {"method": method, "url": path, **self._sent(self._odd())}


def judge(reply: httpx.Response, sent: dict[str, Any]) -> str | None:
    """The fault of an answer, if it has one."""
    text = reply.text
    asked = str(sent.get("url", "")) + str(sent.get("content", b"")[:3000])
    if reply.status_code >= 500:
        return f"{reply.status_code}: {text[:300]}"
    if '"code":500' in text.replace(" ", ""):
        return f"an error of ours in a stream: {text[-300:]}"
    for secret in SECRETS:
        if secret in text and secret not in asked and "/metrics" not in asked:
            return f"it says {secret!r}: {text[:300]}"
    return None


def fuzz(server: Server, num_requests: int, videos: list[Path], seed: int) -> dict[str, Any]:
    """Send the requests; returns statuses and findings."""
    maker, client = Maker(seed, videos), server.client("key-fuzz")
    statuses: Counter[int] = Counter()
    found: dict[str, str] = {}

    def send(sent: dict[str, Any]) -> None:
        try:
            reply = client.request(**sent)
        except (httpx.InvalidURL, UnicodeError, ValueError):
            statuses[NOT_SENT] += 1  # httpx refused to send it
            return
        except httpx.TransportError as error:
            found.setdefault(f"the connection: {error!r}"[:80], str(sent)[:2000])
            return
        statuses[reply.status_code] += 1
        if (wrong := judge(reply, sent)) is not None:
            found.setdefault(wrong[:80], f"{wrong}\n    {str(sent)[-1500:]}")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for done in range(0, num_requests, BATCH):
            made = [maker.make() for _ in range(min(BATCH, num_requests - done))]
            list(threads.map(send, made))
            print(f"{done + len(made)} of {num_requests}", file=sys.stderr, flush=True)
            if server.process.poll() is not None:
                break
    return {"statuses": dict(sorted(statuses.items())), "found": found}


def run_schemathesis(server: Server, num_requests: int) -> tuple[bool, str]:
    """Run it as its users do; returns whether it found nothing, and its last lines."""
    program = shutil.which("schemathesis")
    if program is None:
        return True, "not installed"
    command = [program, "run", f"{server.url}/openapi.json", "--checks", "not_a_server_error"]
    command += ["--max-examples", str(max(1, num_requests // 100))]
    command += ["-H", "Authorization: Bearer key-fuzz", "--no-color"]
    # It leaves files in its working directory.
    home = server.log.parent
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=home)
    lines = [line.strip() for line in done.stdout.strip().splitlines()]
    if done.returncode:
        print(*lines, sep="\n")
    found = [line for line in lines if "generated" in line or "cases" in line]
    return not done.returncode, "; ".join([*found[-2:], *lines[-1:]])


def main() -> None:
    """Send and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    console = Console()
    with workspace(arguments) as here:
        videos = sorted(here.clips.glob("*.mp4"))
        with running(here.start_ours(tenants={"fuzz": ["key-fuzz"]})) as server:
            client = server.client("key-fuzz")
            usual = asking(videos[0], "What is happening?")
            before = client.post("/v1/chat/completions", json=usual).json()["choices"]
            result = fuzz(server, arguments.requests, videos, arguments.seed)
            fine, said = run_schemathesis(server, arguments.requests)
            alive = server.process.poll() is None
            same = alive and (
                client.post("/v1/chat/completions", json=usual).json()["choices"] == before
            )
            if not alive:
                console.print(server.tail(), markup=False)
    for text in result["found"].values():
        console.print(text, markup=False, highlight=False)
    figures = {
        "requests": arguments.requests,
        "statuses": result["statuses"],
        "found": len(result["found"]),
        "schemathesis": said,
        "still_right": same,
    }
    keep("serve_fuzz", arguments, figures)
    if result["found"] or not fine or not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
