"""CI's judgement: disturbed once is named and forgiven, broken twice is not."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xdist")

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
GOES = """
from pathlib import Path
def test_goes():
    Path(__file__).unlink()
    assert False
"""
ENDS_ITS_PROCESS = "import os\ndef test_ends_its_process(): os._exit({})\n"
ENDS_THE_RUN = "import pytest\ndef test_ends_the_run(): pytest.exit('enough')\n"


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


def test_a_broken_test_fails_the_run_and_a_disturbed_one_is_named_beside_it(tmp_path):
    status, said = judged(tmp_path, DISTURBED, BROKEN, STEADY)
    assert status != 0
    assert "2 failed, 1 passed" in said
    assert "1 failed, 1 passed" in said  # the second time, by themselves
    assert "disturbed: test_0.py::test_disturbed\n" in said
    assert "failed twice: test_1.py::test_broken\n" in said


def test_a_disturbed_test_alone_is_forgiven(tmp_path):
    status, said = judged(tmp_path, STEADY, DISTURBED)
    assert status == 0
    assert "disturbed: test_1.py::test_disturbed\n" in said
    assert "failed twice" not in said


def test_a_test_that_is_not_found_again_is_not_forgiven(tmp_path):
    status, said = judged(tmp_path, STEADY, GOES)
    assert status != 0
    assert "once more" in said
    assert "disturbed" not in said


def test_a_file_that_cannot_be_read_fails_the_run(tmp_path):
    assert judged(tmp_path, STEADY, "import nothing_of_this_name\n")[0] != 0


@pytest.mark.parametrize(
    "ending",
    [ENDS_ITS_PROCESS.format(0), ENDS_ITS_PROCESS.format(1), ENDS_THE_RUN],
    ids=["process, as if all were well", "process", "run"],
)
def test_a_run_that_broke_off_is_not_forgiven(tmp_path, ending):
    status, said = judged(tmp_path, DISTURBED, ending)
    assert status != 0
    assert "once more" not in said
