"""The example in the lab's page, run as it stands there."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text()


def test_the_first_example_answers_in_two_styles(capsys):
    example = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)[0]
    exec(compile(example, "lab.md", "exec"), {})
    target, drafter = capsys.readouterr().out.splitlines()
    assert target != drafter
