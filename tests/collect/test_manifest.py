"""What a folder was collected from, and that all of it was collected alike."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("pyarrow", reason="needs headstart[train]")

from headstart.errors import CollectError
from headstart_research.collect.checkpoint import Checkpoint
from headstart_research.collect.clip_source import HELD_OUT
from headstart_research.collect.manifest import FILE, Manifest, licence_of

TARGET = Checkpoint("target", "abc", "def", "apache-2.0")
MANIFEST = Manifest(
    TARGET, "lab", 2, "apache-2.0", questions=("What?",), settings={"max_tokens": 8}
)


def test_the_first_run_writes_it_and_the_next_finds_it_again(tmp_path):
    MANIFEST.settle(tmp_path / "new")
    first = (tmp_path / "new" / FILE).read_text()
    elsewhere = replace(TARGET, name="/data/target")
    replace(MANIFEST, created="later", target=elsewhere).settle(tmp_path / "new")
    assert (tmp_path / "new" / FILE).read_text() == first
    written = json.loads(first)
    assert written["target"]["digest"] == "abc"
    assert written["versions"]["headstart"]
    assert written["questions"] == ["What?"]
    assert not list((tmp_path / "new").glob("*.partial"))


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("target", replace(TARGET, digest="of other weights")),
        ("target", replace(TARGET, tokenizer="another")),
        ("drafter", TARGET),
        ("questions", ("What?", "Who?")),
        ("num_shards", 3),
        ("settings", {"max_tokens": 9}),
        ("versions", {"vllm": "0.1"}),
        ("licence", "cc0-1.0"),
        ("format", 2),
    ],
)
def test_another_collection_in_the_same_folder_is_refused(tmp_path, name, other):
    MANIFEST.settle(tmp_path)
    with pytest.raises(CollectError, match=f"other {name}.*another --out"):
        replace(MANIFEST, **{name: other}).settle(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_what_is_no_manifest_is_refused(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(CollectError, match="another folder"):
        MANIFEST.settle(tmp_path)


def test_it_is_read_as_it_was_written(tmp_path):
    for number, written in enumerate((MANIFEST, replace(MANIFEST, drafter=TARGET))):
        written.settle(tmp_path / str(number))
        assert Manifest.read(tmp_path / str(number)) == written


def test_records_of_held_out_drives_say_that_nothing_may_learn_from_them(tmp_path):
    replace(MANIFEST, source=HELD_OUT).settle(tmp_path)
    assert Manifest.read(tmp_path).is_held_out
    assert not MANIFEST.is_held_out
    with pytest.raises(CollectError, match="other source"):
        MANIFEST.settle(tmp_path)


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"target": 1}', '{"drafter": null}'])
def test_a_folder_without_records_is_named(tmp_path, text):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    with pytest.raises(CollectError, match="a folder that headstart collect filled"):
        Manifest.read(tmp_path)


def write_model(directory, weights=b"weights", tokenizer="{}", card=None):
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(weights)
    (directory / "tokenizer.json").write_text(tokenizer)
    if card is not None:
        (directory / "README.md").write_text(card)
    return Checkpoint.of(str(directory))


def test_a_checkpoint_is_told_by_its_weights_and_its_tokenizer(tmp_path):
    plain = write_model(tmp_path / "a")
    assert write_model(tmp_path / "b") == replace(plain, name=str(tmp_path / "b"))
    assert write_model(tmp_path / "b", weights=b"Weights").digest != plain.digest
    assert write_model(tmp_path / "b", tokenizer="[]").tokenizer != plain.tokenizer


def test_a_model_that_is_nowhere_is_named(tmp_path):
    with pytest.raises(CollectError, match="check the name"):
        Checkpoint.of(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        (None, None),
        ("# A model", None),
        ("---\nlicense: apache-2.0\n---\n# A model", "apache-2.0"),
        ("---\ntags: [a]\nlicense: 'llama2'\n---\n", "llama2"),
        ("---\ntags: [a]\n---\nlicense: mit", None),
    ],
)
def test_the_licence_is_what_the_models_card_says(tmp_path, card, licence):
    assert write_model(tmp_path / "model", card=card).licence == licence


def test_the_callers_licence_counts_before_the_cards():
    other = replace(TARGET, licence="llama2")
    assert licence_of("cc0-1.0", [TARGET]) == "cc0-1.0"
    assert licence_of(None, [TARGET, None, other]) == "apache-2.0, llama2"
    assert licence_of(None, [replace(TARGET, licence=None)]) == "not stated"
