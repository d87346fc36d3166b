"""CI's judgement: disturbed once is named and forgiven, broken twice is not."""

import subprocess
import sys
from pathlib import Path

VERDICT = Path(__file__).parents[1] / ".ci" / "verdict.py"

STEADY = "def test_steady(): pass\n"
DISTURBED = """
from pathlib import Path
def test_disturbed():
    tried = Path("tried")
    first = not tried.exists()
    tried.touch()
    assert not first
"""
BROKEN = "def test_broken(): assert False\n"
ENDS_THE_RUN = "import os\ndef test_ends_the_run(): os._exit(1)\n"


def judged(where, *contents):
    for number, content in enumerate(contents):
        (where / f"test_{number}.py").write_text(content)
    (where / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, str(VERDICT), "-q"], cwd=where, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_what_passes_at_once_is_run_once(tmp_path):
    status, said = judged(tmp_path, STEADY)
    assert status == 0
    assert said.count("1 passed") == 1
    assert "once more" not in said


def test_a_disturbed_test_is_named_and_forgiven(tmp_path):
    status, said = judged(tmp_path, STEADY, DISTURBED)
    assert status == 0
    assert "disturbed: test_1.py::test_disturbed\n" in said
    assert "failed twice" not in said


def test_a_broken_test_fails_the_run_beside_a_disturbed_one(tmp_path):
    status, said = judged(tmp_path, DISTURBED, BROKEN)
    assert status != 0
    assert "disturbed: test_0.py::test_disturbed\n" in said
    assert "failed twice: test_1.py::test_broken\n" in said


def test_a_file_that_cannot_be_read_fails_the_run(tmp_path):
    assert judged(tmp_path, STEADY, "import nothing_of_this_name\n")[0] != 0


def test_a_run_that_broke_off_is_not_forgiven(tmp_path):
    status, said = judged(tmp_path, DISTURBED, ENDS_THE_RUN)
    assert status != 0
    assert "disturbed" not in said
