"""The distributions as wheels: what is in them, and headstart's alone without an engine."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.release.conftest import ROOT, shorten_weights
from tests.test_base_install import requirements_directory

NOT_IN_A_BUILD = shutil.ignore_patterns("*.egg-info", "__pycache__", "build", "*.pt", "*.partial")
PAIR = {
    f"headstart_lab/pair/{model}/{name}"
    for model in ("target", "drafter")
    for name in (
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "SHA256SUMS",
    )
}
OTHERS = {
    "client": (),
    "events": (),
    "server": ("page.html", "live.html", "live_camera.js"),
    "research": (),
}
"""The other folders of distributions, with what they bring beside modules and types."""
BRIDGE = {
    f"headstart_lab/pair/bridge/{name}"
    for name in ("config.json", "model.safetensors", "README.md", "SHA256SUMS")
}
NOTES = {
    *(
        f"headstart_lab/pair/training/{model}/{name}"
        for model in ("target", "drafter")
        for name in ("loss.png", "results.json")
    ),
    *(
        f"headstart_lab/pair/training/bridge/{name}"
        for name in ("texts.png", "answers.png", "results.json")
    ),
}


def files_in(wheel: Path) -> set[str]:
    return {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheels(released) -> dict[str, Path]:
    """Each by the name of its distribution."""
    return {wheel.name.partition("-")[0]: wheel for wheel in released.glob("*.whl")}


@pytest.fixture(scope="module")
def headstart_wheel(wheels):
    return wheels["headstart"]


@pytest.fixture(scope="module")
def lab_wheel(tmp_path_factory):
    """Built by pip from a checkout in which a training run has left its state."""
    source, output = tmp_path_factory.mktemp("lab") / "lab", tmp_path_factory.mktemp("lab-wheel")
    shutil.copytree(ROOT / "lab", source, ignore=NOT_IN_A_BUILD)
    shorten_weights(source)
    training = source / "headstart_lab" / "pair" / "training"
    (training / "tokenizer").mkdir(parents=True)
    (training / "tokenizer" / "tokenizer.json").write_text("{}")
    for name in ("checkpoint.pt", "eyes.pt", "checkpoint.pt.partial"):
        (training / "target" / name).write_text("state")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps"]
    pip += ["--no-build-isolation", "--wheel-dir", str(output), str(source)]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    (wheel,) = output.glob("*.whl")
    return wheel


def modules(package: Path) -> set[str]:
    return {str(path.relative_to(package.parent)) for path in package.rglob("*.py")}


def test_headstart_brings_its_modules_and_its_types_and_nothing_of_others(headstart_wheel):
    files = files_in(headstart_wheel)
    assert files == {*modules(ROOT / "src" / "headstart"), "headstart/py.typed"}
    assert headstart_wheel.stat().st_size < 1_000_000


@pytest.mark.parametrize("folder", OTHERS)
def test_another_brings_its_modules_its_types_and_its_data(folder, wheels):
    package = f"headstart_{folder}"
    data = {f"{package}/{name}" for name in ("py.typed", *OTHERS[folder])}
    assert files_in(wheels[package]) == {*modules(ROOT / folder / package), *data}


def test_the_lab_brings_its_modules_and_the_pair_and_no_training_state(lab_wheel):
    package = ROOT / "lab" / "headstart_lab"
    data = files_in(lab_wheel) - modules(package) - {"headstart_lab/py.typed"}
    assert not modules(package) - files_in(lab_wheel)
    assert data >= PAIR | BRIDGE | NOTES
    allowed = tuple(f"headstart_lab/pair/{model}/" for model in ("target", "drafter", "bridge"))
    assert {name for name in data if not name.startswith(allowed)} == NOTES


def test_the_lab_registers_its_commands_and_workloads(lab_wheel):
    archive = ZipFile(lab_wheel)
    (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert archive.read(entry_points).decode().split() == [
        *("[headstart.commands]", "demo", "=", "headstart_lab.cli.live_demo:app"),
        *("lab", "=", "headstart_lab.cli:app"),
        *("[headstart.sources]", "drive", "=", "headstart_lab.live_drive:open_drive"),
        *("[headstart.streams]", "lab", "=", "headstart_lab.drive_streams:drive_streams"),
        *("[headstart.workloads]", "lab", "=", "headstart_lab.workloads:lab_workloads"),
    ]


def test_headstart_never_imports_the_lab():
    for module in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "headstart_lab"], module


@pytest.fixture(scope="module")
def installed(headstart_wheel, tmp_path_factory):
    """A directory with headstart from its wheel, its requirements, and nothing else."""
    site = requirements_directory(tmp_path_factory.mktemp("site"))
    ZipFile(headstart_wheel).extractall(site)
    return site


def run(installed, *arguments):
    code = (
        f"import sys; sys.path[:0] = [{str(installed)!r}]; from headstart.cli import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_wheel_alone_runs(installed):
    done = run(installed, "--help")
    assert done.returncode == 0, done.stderr
    assert "pip install ./lab" in " ".join(done.stdout.replace("│", "").split())


@pytest.mark.parametrize(
    ("arguments", "how"),
    [
        (["lab"], "pip install ./lab"),
        (["lab", "--help"], "pip install ./lab"),
        (["lab", "demo", "--clips", "2"], "pip install ./lab"),
        (["serve", "--target", "nowhere"], "pip install 'headstart[server]'"),
        (["memory", "show"], "pip install 'headstart[server]'"),
        (["bench", "--target", "nowhere"], "pip install 'headstart[research]'"),
    ],
)
def test_commands_of_other_packages_say_what_to_install(installed, arguments, how):
    done = run(installed, *arguments)
    assert done.returncode == 1
    assert how in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_of_another_package_says_where_it_is(installed):
    code = f"import sys; sys.path[:0] = [{str(installed)!r}]; from headstart import LiveClient"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert "pip install 'headstart[client]'" in done.stderr


def test_a_lab_of_another_version_leaves_headstarts_own_commands_alone(installed, tmp_path):
    site = tmp_path / "site"
    shutil.copytree(installed, site, symlinks=True)
    metadata = site / "headstart_lab-9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: headstart-lab\nVersion: 9\n")
    (metadata / "entry_points.txt").write_text(
        "[headstart.commands]\nlab = headstart_lab.cli:app\n"
    )
    assert run(site, "--version").returncode == 0
    assert run(site, "--help").returncode == 0
    done = run(site, "lab", "demo")
    assert done.returncode == 1
    assert "headstart_lab.cli:app does not load" in done.stderr
