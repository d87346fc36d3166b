"""What clients of OpenAI and vLLM say without knowing of us: the answer expected, the session."""

import asyncio
import json

import pytest

from headstart.speculation.board import MAX_DRAFT_TOKENS
from headstart_server.prediction import Tokenizing
from headstart_server.response import Response
from rig.servers import MODEL, chunks_of, content_of

CHAT = "/v1/chat/completions"
SENTENCES = ["The road is wide.", 'The people say "stop" {twice}.', "A car waits: the road is wet."]
NUM_TOKENS = 24


@pytest.fixture(scope="module")
def words():
    """A tokenizer in the shape of Llama's: a mark begins each word, and each text."""
    from headstart_lab.tokenizer import train_tokenizer

    return train_tokenizer(SENTENCES, 400)


@pytest.fixture(scope="module")
def bytes_():
    """A tokenizer in the shape of GPT's: a text begins as it is written."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator(SENTENCES, BpeTrainer(vocab_size=400, initial_alphabet=alphabet))
    return PreTrainedTokenizerFast(tokenizer_object=trained)


def test_an_answer_in_words_begins_with_the_mark_of_a_word(words):
    spelling = Tokenizing(words)
    tokens = spelling.tokens("The road is wide.", is_structured=False)
    assert words.convert_ids_to_tokens(tokens)[0].startswith("▁")
    assert tokens == spelling.tokens(" The road is wide.", is_structured=False)


def test_an_answer_under_a_grammar_begins_as_it_is_written(words):
    tokens = Tokenizing(words).tokens('{"road": "wet"}', is_structured=True)
    assert words.convert_ids_to_tokens(tokens)[0] == "{"
    assert words.decode([words.convert_tokens_to_ids("▁The"), *tokens]) == 'The{"road": "wet"}'


@pytest.mark.parametrize("text", ["The road", " The road", "\nThe road", "\n\n", '{"a": 1}', ""])
@pytest.mark.parametrize("is_structured", [False, True])
def test_without_word_marks_a_text_is_spelt_as_it_is(bytes_, text, is_structured):
    tokens = Tokenizing(bytes_).tokens(text, is_structured)
    assert bytes_.decode(tokens) == text
    assert list(tokens) == bytes_.encode(text, add_special_tokens=False)


def test_a_long_prediction_is_cut(words):
    tokens = Tokenizing(words).tokens("The road is wide. " * 100_000, is_structured=False)
    assert len(tokens) == MAX_DRAFT_TOKENS


def passed(kind: str, *bodies: bytes) -> tuple[dict[bytes, bytes], bytes, int]:
    """What a client gets of a response: headers, body, and how often it was counted."""
    sent, asked = [], []

    async def send(message):
        sent.append(message)

    async def count():
        asked.append(1)
        return {"accepted_prediction_tokens": 3, "rejected_prediction_tokens": 4}

    async def run():
        usage = Response(send, "id", "model", count=count)
        length = str(sum(map(len, bodies))).encode()
        headers = [(b"content-type", kind.encode()), (b"content-length", length)]
        await usage.send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, body in enumerate(bodies, 1):
            more = number < len(bodies)
            await usage.send({"type": "http.response.body", "body": body, "more_body": more})
        await usage.finish()

    asyncio.run(run())
    assert not sent[-1].get("more_body", False)
    return dict(sent[0]["headers"]), b"".join(m["body"] for m in sent[1:]), len(asked)


@pytest.mark.parametrize("details", [None, {"reasoning_tokens": 2}])
def test_a_whole_answers_usage_gets_two_more_counts(details):
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": details}
    answer = {"choices": [{"message": {"content": "é"}}], "usage": usage, "id": "x"}
    headers, body, _ = passed("application/json", json.dumps(answer).encode())
    assert int(headers[b"content-length"]) == len(body)
    counts = {"accepted_prediction_tokens": 3, "rejected_prediction_tokens": 4}
    told = {**usage, "completion_tokens_details": {**(details or {}), **counts}}
    assert json.loads(body) == {**answer, "usage": told}


@pytest.mark.parametrize("body", [b'{"error": {"code": 400}}', b"not json", b"[]", b'{"usage": 3}'])
def test_what_is_no_answer_passes_to_the_byte(body):
    assert passed("application/json", body)[1] == body


def test_in_a_stream_only_the_chunk_of_the_usage_is_changed():
    words_ = b'data: {"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}\n\n'
    usage = b'data: {"choices":[],"usage":{"completion_tokens":1}}\n\n'
    done = b"data: [DONE]\n\n"
    whole = words_ + usage + done
    cuts = [whole[start : start + 7] for start in range(0, len(whole), 7)]
    for bodies in ([words_, usage, done], [whole], cuts):
        _, body, count = passed("text/event-stream; charset=utf-8", *bodies)
        assert count == 1
        assert body.startswith(words_)
        assert body.endswith(done)
        told = json.loads(body[len(words_) : -len(done)].removeprefix(b"data: "))
        assert told["usage"]["completion_tokens"] == 1
        assert told["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] == 3


def body_of(question: str, tiny_target, **more) -> dict:
    """A request whose answer is spelt in one way only: the model may say whole words alone."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_target)
    whole = {
        id
        for piece, id in tokenizer.get_vocab().items()
        if piece.startswith("▁")
        and piece[1:].isalpha()
        and tokenizer.encode(piece[1:], add_special_tokens=False) == [id]
    }
    assert len(whole) > 20
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": NUM_TOKENS,
        "temperature": 0,
        "allowed_token_ids": sorted(whole),
        **more,
    }


def expecting(text: str) -> dict:
    return {"prediction": {"type": "content", "content": text}}


def counts_of(usage: dict) -> tuple[int, int]:
    details = usage["completion_tokens_details"]
    return details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]


def without_names(answer: dict) -> dict:
    """Without what differs between any two answers."""
    passing = ("id", "created", "system_fingerprint")
    return {name: value for name, value in answer.items() if name not in passing}


@pytest.mark.engine
def test_a_right_prediction_is_a_draft_and_counted(pair, tiny_target):
    plain, ours = (server.client() for server in pair)
    body = body_of("What is predicted?", tiny_target)
    expected = without_names(plain.post(CHAT, json=body).json())
    text = expected["choices"][0]["message"]["content"]
    for content in (text, text.strip(), [{"type": "text", "text": text}]):
        told = ours.post(CHAT, json={**body, **expecting(content)}).json()
        assert counts_of(told["usage"]) == (NUM_TOKENS, 0)
        told["usage"]["completion_tokens_details"] = expected["usage"]["completion_tokens_details"]
        assert without_names(told) == expected
    drafted = ours.post(CHAT, json={**body, **expecting(text), "headstart": {}}).json()
    caller = drafted["headstart"]["sources"]["caller"]
    assert caller["accepted_tokens"] == NUM_TOKENS - 1  # the last comes without a draft
    assert drafted["headstart"]["passes"] < NUM_TOKENS / 2


@pytest.mark.engine
def test_a_wrong_prediction_changes_nothing_but_its_count(pair, tiny_target):
    plain, ours = (server.client() for server in pair)
    body = body_of("What is predicted wrongly?", tiny_target)
    expected = plain.post(CHAT, json=body).json()["choices"]
    said = expected[0]["message"]["content"].split()
    half = " ".join([*said[:8], "nobody", "said", "this"])
    told = ours.post(CHAT, json={**body, **expecting(half)}).json()
    assert told["choices"] == expected
    accepted, rejected = counts_of(told["usage"])
    assert accepted == 8
    assert rejected >= 3
    told = ours.post(CHAT, json={**body, **expecting("!" * 40)}).json()
    assert told["choices"] == expected
    assert counts_of(told["usage"])[0] == 0
    assert counts_of(told["usage"])[1] > 0


@pytest.mark.engine
def test_a_streamed_answer_counts_where_usage_is_asked_for(pair, tiny_target):
    plain, ours = (server.client() for server in pair)
    body = body_of("What is streamed?", tiny_target, stream=True)
    text = content_of(chunks_of(plain.post(CHAT, json=body).text))
    asked = {**body, **expecting(text)}
    silent = chunks_of(ours.post(CHAT, json=asked).text)
    assert content_of(silent) == text
    assert not any(chunk.get("usage") for chunk in silent)
    options = {"stream_options": {"include_usage": True}}
    *chunks, last = chunks_of(ours.post(CHAT, json={**asked, **options}).text)
    assert content_of(chunks) == text
    assert counts_of(last["usage"]) == (NUM_TOKENS, 0)
    expected = chunks_of(plain.post(CHAT, json={**body, **options}).text)[-1]["usage"]
    assert last["usage"] | {"completion_tokens_details": None} == expected | {
        "completion_tokens_details": None
    }
    with_account = chunks_of(ours.post(CHAT, json={**asked, **options, "headstart": {}}).text)
    assert [counts_of(c["usage"]) for c in with_account if c.get("usage")] == [(NUM_TOKENS, 0)]
    assert with_account[-1]["headstart"]["sources"]["caller"]["accepted_tokens"] > 0


@pytest.mark.engine
def test_the_official_client_predicts(pair, tiny_target):
    from openai import OpenAI

    body = body_of("What does the client predict?", tiny_target)
    allowed = {"allowed_token_ids": body.pop("allowed_token_ids")}
    with OpenAI(base_url=f"{pair[1].url}/v1", api_key="none", max_retries=0) as client:
        first = client.chat.completions.create(**body, extra_body=allowed)
        assert first.usage.completion_tokens_details is None
        text = first.choices[0].message.content
        again = client.chat.completions.create(**body, **expecting(text), extra_body=allowed)
        assert again.choices[0].message.content == text
        details = again.usage.completion_tokens_details
        assert details.accepted_prediction_tokens == NUM_TOKENS
        assert details.rejected_prediction_tokens == 0


@pytest.mark.engine
def test_what_vllm_refuses_with_drafts_is_a_400_that_names_the_field(pair, tiny_target):
    plain, ours = (server.client() for server in pair)
    body = body_of("What is refused?", tiny_target)
    for field in ({"min_p": 0.2, "temperature": 1.0}, {"logit_bias": {"300": 2}}):
        assert plain.post(CHAT, json={**body, **field}).status_code == 200
        reply = ours.post(CHAT, json={**body, **field})
        assert reply.status_code == 400
        assert next(iter(field)) in reply.json()["error"]["message"]


@pytest.mark.engine
def test_a_session_is_answered_to_the_letter(pair, tiny_target):
    plain, ours = (server.client() for server in pair)
    body = body_of("What is said in a session?", tiny_target)
    named = {"headers": {"X-Session-ID": "a session"}}
    expected = without_names(plain.post(CHAT, json=body, **named).json())
    before = from_memory(ours)
    # The first answer is remembered. A busy machine may find for a while that drafts do not pay.
    for _ in range(30):
        assert without_names(ours.post(CHAT, json=body, **named).json()) == expected
        if from_memory(ours) > before:
            return
    pytest.fail("nothing was drafted from memory")
    texts = {"model": MODEL, "prompt": "What is completed?", "max_tokens": NUM_TOKENS}
    texts |= {"temperature": 0, "session_id": "another session"}
    expected = without_names(plain.post("/v1/completions", json=texts).json())
    before = from_memory(ours)
    for _ in range(2):
        assert without_names(ours.post("/v1/completions", json=texts).json()) == expected
    assert from_memory(ours) > before


def from_memory(client) -> float:
    """Accepted tokens of the server's memory so far."""
    return sum(
        float(line.split()[-1])
        for line in client.get("/metrics").text.splitlines()
        if line.startswith('headstart_accepted_tokens_total{source="memory"}')
    )
