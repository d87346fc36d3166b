"""Lines of a log: all of them, but for the one that a killed writer has left half."""

import pytest

from headstart.drafters.memory_log import log_lines

ROW = '{"question": "wer, \u2028 \U0001f697?", "target_tokens": [1]}'


def lines(tmp_path, content):
    file = tmp_path / "log.jsonl"
    file.write_bytes(content)
    return list(log_lines(file))


def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path):
    content = f"{ROW}\n\n  \nnone\n{ROW}".encode()
    assert lines(tmp_path, content) == [(1, ROW + "\n"), (4, "none\n"), (5, ROW)]


def test_wherever_the_last_row_breaks_off_the_others_are_read(tmp_path):
    row = ROW.encode()
    for length in range(1, len(row)):
        assert lines(tmp_path, row + b"\n" + row[:length]) == [(1, ROW + "\n")]
    assert len(lines(tmp_path, row + b"\n" + row)) == 2


@pytest.mark.parametrize("broken", [b"{", b"none", b'{"question": '])
def test_a_broken_line_anywhere_else_is_given_to_whoever_refuses_it(tmp_path, broken):
    row = ROW.encode()
    assert lines(tmp_path, broken + b"\n" + row)[0] == (1, broken.decode() + "\n")
    assert lines(tmp_path, row + b"\n" + broken + b"\n")[1] == (2, broken.decode() + "\n")


def test_a_last_line_that_never_began_as_a_row_is_not_passed_over(tmp_path):
    assert lines(tmp_path, b"none") == [(1, "none")]
