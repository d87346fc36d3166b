import json

import pytest
from typer.testing import CliRunner

from headstart.cli import app
from headstart.speculation.memory_log import read_memory_log


def run(tmp_path, rows, *options):
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "site.jsonl"
    result = CliRunner().invoke(app, ["memory", "import", str(file), "--out", str(out), *options])
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
