"""The cards of the lab's models say what their files and their training runs say."""

import json
import math
import struct
from pathlib import Path

import pytest
import yaml

PAIR = Path(__file__).parents[2] / "lab" / "headstart_lab" / "pair"
MODELS = ("target", "drafter", "bridge")


def card(model):
    return (PAIR / model / "README.md").read_text()


def front_matter(model):
    _, head, _ = card(model).split("---\n", 2)
    return yaml.safe_load(head)


@pytest.mark.parametrize("model", MODELS)
def test_a_hub_finds_licence_library_and_tags(model):
    found = front_matter(model)
    assert found["license"] == "apache-2.0"
    assert found["library_name"] in ("headstart", "transformers")
    assert "headstart" in found["tags"]
    assert "/" not in found.get("base_model", "owner/model").removeprefix("owner/")


def num_parameters(weights):
    with weights.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        tensors = json.loads(file.read(length))
    tensors.pop("__metadata__", None)
    return sum(math.prod(tensor["shape"]) for tensor in tensors.values())


@pytest.mark.parametrize("model", ["target", "drafter"])
def test_figures_are_those_of_the_run(model):
    text = card(model)
    results = json.loads((PAIR / "training" / model / "results.json").read_text())
    score = results["score"]
    for said in (
        f"| parameters | {num_parameters(PAIR / model / 'model.safetensors'):,},",
        f"{results['facts']:.1%} of {score['num_questions']} questions",
        f"{results['facts_blind']:.1%} by a guess",
        f"word for word | {score['exact']:.1%} of",
        f"{results['course']['num_steps']} steps on {results['num_clips']:,} clips of"
        f" {results['course']['num_drives']} drawn drives, seed {results['seed']},"
        f" {results['hours']:.1f} hours",
        f"{results['size']['llama']['num_layers']} layers, {results['size']['llama']['hidden']}",
        f"{results['size']['tower']['num_layers']} layers, {results['size']['tower']['hidden']}",
    ):
        assert said in text, said
    config = json.loads((PAIR / model / "config.json").read_text())
    assert f"`{config['architectures'][0]}`" in text


def test_the_bridge_says_what_its_config_says():
    stated = json.loads((PAIR / "bridge" / "config.json").read_text())["headstart"]
    text = card("bridge")
    assert stated["verifier"]["digest"] in text
    assert stated["verifier"]["tokenizer"] in text
    assert f"{stated['bridge']['vocabulary_size']} words" in text
