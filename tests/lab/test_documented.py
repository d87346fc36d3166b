"""The example in the lab's page, run as it stands there."""

from tests.documents import DOCS, blocks


def test_the_first_example_answers_in_two_styles(capsys):
    example = blocks(DOCS / "lab.md", "python")[0]
    exec(compile(example, "lab.md", "exec"), {})
    target, drafter = capsys.readouterr().out.splitlines()
    assert target != drafter
