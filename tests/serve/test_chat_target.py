"""A server whose target has a chat template of its own: the same answers as vLLM in process."""

import base64
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from openai import OpenAI
from PIL import Image

from rig.servers import (
    ENGINE,
    MODEL,
    Server,
    ask,
    asking,
    free_port,
    running,
    serve_command,
    start,
    toml,
)
from tests.models.chat_target import NUM_FRAMES, needs_torchvision
from tests.models.oracle import QUESTIONS, random_clip
from tests.models.tiny_targets import SAVING

pytestmark = [pytest.mark.engine, needs_torchvision]

MAX_TOKENS = 24
BLOCK_SIZE = int(ENGINE["block_size"])
OVERRIDES = {"note": "an entry of the config that the model does not read"}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("qwen3_vl") / MODEL
    SAVING["qwen3_vl"](directory)
    return directory


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory, clips, checkpoint) -> Iterator[Server]:
    home, port = tmp_path_factory.mktemp("chat server"), free_port()
    config = home / "headstart.toml"
    tables = {
        "server": {"target": checkpoint, "port": port, "open": True},
        "media": {"root": clips},
        "vllm": {**ENGINE, "enable_prompt_tokens_details": True},
        "vllm.hf_overrides": OVERRIDES,
    }
    config.write_text(toml(tables))
    with running(start(serve_command("--config", str(config)), port, home / "log")) as server:
        yield server


@pytest.fixture(scope="module")
def client(chat_server) -> httpx.Client:
    return chat_server.client()


@pytest.fixture(scope="module")
def plain(checkpoint) -> Iterator[Any]:
    """vLLM alone."""
    from vllm import LLM

    return LLM(str(checkpoint), **ENGINE)


def said(plain: Any, body: dict[str, Any]) -> list[int]:
    """What vLLM alone answers to a request's messages."""
    from vllm import SamplingParams

    params = SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS)
    (output,) = plain.chat(body["messages"], params, use_tqdm=False)
    return list(output.outputs[0].token_ids)


def tokens_of(reply: dict[str, Any]) -> list[int]:
    return reply["choices"][0]["token_ids"]


def encoded(frame: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(frame).save(file, "JPEG")
    return base64.b64encode(file.getvalue()).decode()


def jpegs(frames: np.ndarray) -> str:
    """Frames as an address of a video that vLLM takes: JPEGs, one after the other."""
    return f"data:video/jpeg;base64,{','.join(map(encoded, frames))}"


def picture_part(frame: np.ndarray) -> dict[str, Any]:
    url = f"data:image/jpeg;base64,{encoded(frame)}"
    return {"type": "image_url", "image_url": {"url": url}}


def about(content: str | Path, question: str, **more: Any) -> dict[str, Any]:
    return asking(content, question, max_tokens=MAX_TOKENS, return_token_ids=True, **more)


def requests(clips: Path, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Videos as files and as frames, pictures, a system prompt, words alone."""
    for question in QUESTIONS[:2]:
        for name in ("street.mp4", "dusk.mp4", "wide.mp4"):
            yield about(clips / name, question)
        for num_frames in (2, 3, NUM_FRAMES):
            yield about(jpegs(random_clip(rng, num_frames)), question)
    picture = picture_part(random_clip(rng, 1)[0])
    body = about(clips / "street.mp4", QUESTIONS[0])
    video, text = body["messages"][0]["content"]
    told = {"role": "system", "content": "Answer with numbers."}
    for messages in (
        [{"role": "user", "content": [picture, text]}],
        [{"role": "user", "content": [picture, video, text]}],
        [told, {"role": "user", "content": [video, text]}],
        [{"role": "user", "content": "Hello"}],
    ):
        yield {**body, "messages": messages}


def test_answers_equal_vllms_own_with_drafts(client, plain, clips, rng):
    answers, accepted = set(), 0
    for number, body in enumerate(requests(clips, rng)):
        expected = said(plain, body)
        for _ in range(2):  # the second time memory has the answer
            reply = ask(client, body, stream=f"camera {number}")
            assert tokens_of(reply) == expected
        accepted += reply["headstart"]["accepted_tokens"]
        answers.add(tuple(expected))
    assert len(answers) > number // 2  # the model looked
    assert accepted > 5 * number


@pytest.mark.parametrize("num_same", [4, 7])
def test_clips_of_frames_share_what_was_computed_of_equal_ones(client, plain, rng, num_same):
    first = random_clip(rng, NUM_FRAMES)
    second = first.copy()
    second[num_same:] = 255 - second[num_same:]
    question = f"{QUESTIONS[0]} {num_same}"
    ask(client, about(jpegs(first), question))
    body = about(jpegs(second), question)
    reply = ask(client, body)
    assert tokens_of(reply) == said(plain, body)
    usage, cached = reply["usage"], reply["headstart"]["cached_tokens"]
    # Whole pairs are equal, and each pair has the same number of tokens, less than the prompt's.
    a_pair = usage["prompt_tokens"] / (NUM_FRAMES / 2)
    assert BLOCK_SIZE <= cached <= num_same // 2 * a_pair
    assert cached % BLOCK_SIZE == 0
    assert ask(client, body)["headstart"]["cached_tokens"] > cached


def test_a_client_that_sends_pictures_names_its_stream_in_the_address(chat_server, plain, rng):
    """One request a frame: the words, then a JPEG, as programs that caption a webcam do."""
    camera = OpenAI(base_url=f"{chat_server.url}/streams/kitchen/v1", api_key="none")

    def accepted() -> float:
        return accepted_tokens(chat_server.client())

    def ask_about(parts: list[dict[str, Any]], temperature: float = 0.0) -> Any:
        return camera.chat.completions.create(
            model=camera.models.list().data[0].id,
            messages=[{"role": "user", "content": parts}],
            max_tokens=MAX_TOKENS,
            temperature=temperature,
            extra_body={"return_token_ids": True},
        )

    words = {"type": "text", "text": "What is in the kitchen?"}
    first, second = (picture_part(frame) for frame in random_clip(rng, 2))
    before = accepted()
    for parts in ([words, first], [words, second], [words, first]):
        body = {"messages": [{"role": "user", "content": parts}]}
        assert ask_about(parts).choices[0].token_ids == said(plain, body)
    assert accepted() > before + MAX_TOKENS // 2  # the last answer is the first one again
    assert ask_about([words, second], temperature=0.7).usage.completion_tokens > 0

    # Where pictures are added, those before are not computed again.
    large = [picture_part(frame) for frame in rng.integers(0, 255, (3, 256, 256, 3), np.uint8)]
    cached = [
        ask_about([words, *large[:number]]).usage.prompt_tokens_details.cached_tokens
        for number in (1, 2, 3)
    ]
    assert cached[0] < 64 <= cached[1] < 128 <= cached[2]


def accepted_tokens(client: httpx.Client) -> float:
    """That drafters drafted and the target accepted, so far."""
    found = re.findall(
        r"^headstart_accepted_tokens_total(?:{.*})? (.+)$", client.get("/metrics").text, re.M
    )
    return sum(map(float, found))
