"""The engines a bench compares: bare vLLM, its own drafters, and headstart's sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headstart.drafters.registry import DEFAULT_DRAFTERS, installed
from headstart.engine.draft_model import draft_model
from headstart.engine.engine_resources import EngineResources
from headstart.engine.headstart import Headstart
from headstart.engine.options import Sources
from headstart_events.beside.placement import Machine, alone_on_two
from headstart_research.bench.result import BARE

TIMED = "timed"
FED = "fed"
LIVE_OWN = "live, own stream"
TWO_DEVICES = "bare vLLM x2"
SILENT = Sources(drafters=())
# A model that was not taught JSON fills its answer with blanks where a grammar allows them.
TIGHT_JSON = {"backend": "xgrammar", "disable_any_whitespace": True}
PEER_DRAFTS = {"per_request_spec_decode_metrics": "summary"}
UNCACHED: Mapping[str, Any] = {
    "mm_processor_cache_gb": 0,
    "enable_mm_processor_stats": False,
    "structured_outputs_config": TIGHT_JSON,
}
"""Every clip is new, as on a camera. The vision tower is not timed: every answer would wait for the
question how long it took."""


@dataclass(frozen=True)
class Method:
    """One way to run the target."""

    name: str
    words: str
    """What it is; shown on the page of charts."""
    sources: Sources | None = None
    """None where vLLM's scheduler is left as it is."""
    drafter: bool = False
    is_fed: bool = False
    """Whether frames are prefilled as they arrive; for live workloads only."""
    vllm: Mapping[str, Any] = field(default_factory=dict)
    resources: EngineResources = field(default_factory=EngineResources)

    @property
    def knows_answers(self) -> bool:
        """Whether it has a memory log."""
        return self.sources is not None and self.sources.memory_log is not None


@dataclass(frozen=True)
class Rig:
    """What all methods of a run have in common."""

    target: str
    drafter: str | None = None
    max_draft_tokens: int = 32
    vllm: Mapping[str, Any] = field(default_factory=dict)
    drafter_vllm: Mapping[str, Any] = field(default_factory=dict)
    num_frames: int | None = None
    """Of a clip; the target's own number, if none is given."""
    bridge: Path | None = None
    memory_log: Path | None = None
    """Answers that memory and the bridge know from the start."""
    usual: Mapping[str, Any] = field(default_factory=lambda: UNCACHED)
    """What every engine is told, unless ``vllm`` or the method says otherwise."""

    def start(self, method: Method) -> Headstart:
        arguments = {**self.usual, **self.vllm, **method.vllm, **method.resources.arguments}
        if method.sources is None:
            with method.resources.taken():
                return Headstart(
                    self.target, max_draft_tokens=0, num_frames=self.num_frames, vllm=arguments
                )
        beside = None
        if method.drafter and self.drafter is not None:
            beside = draft_model(self.drafter, self.drafter_vllm, method.sources)
        return Headstart(
            self.target,
            draft_model=beside,
            sources=method.sources,
            max_draft_tokens=self.max_draft_tokens,
            num_frames=self.num_frames,
            vllm=arguments,
        )

    def methods(self, two_devices: bool = False) -> tuple[list[Method], list[str]]:
        """The methods that can run here, bare vLLM first, and why the others cannot."""
        notes = []
        found = [
            Method(BARE, "vLLM alone, with its own scheduler"),
            Method(
                TIMED,
                "the same with its vision tower timed: the fifth stage, and what that costs",
                vllm={"enable_mm_processor_stats": True},
            ),
            Method("none", "headstart's scheduler without a drafter", SILENT),
            Method("ngram (vLLM)", "vLLM's own prompt lookup", vllm=self._peer("ngram")),
        ]
        if find_spec("arctic_inference") is not None:
            found.append(
                Method("suffix (vLLM)", "vLLM's own suffix decoding", vllm=self._peer("suffix"))
            )
        else:
            notes.append(
                "suffix (vLLM) was not measured: arctic-inference is not installed beside vLLM"
            )
        found += [
            Method(row.name, f"drafts from {row.drafts_from}", Sources(drafters=(row.name,)))
            for row in installed()
            if not row.takes
        ]
        together = " and ".join(DEFAULT_DRAFTERS)
        if self.drafter is not None:
            found.append(Method("eventgpt", "the event camera's model beside it", SILENT, True))
            found.append(Method("cascade", f"{together}, and eventgpt", Sources(), True))
        else:
            found.append(Method("cascade", together, Sources()))
            notes.append("eventgpt was not measured: there is no draft model (--draft-model)")
        # A frame is rendered again with each feed that it is part of: its pixels are kept.
        live = {"mm_processor_cache_gb": 1}
        found += [
            Method(FED, "vLLM alone, frames prefilled as they arrive", is_fed=True, vllm=live),
            Method(
                LIVE_OWN,
                f"{together} of the same stream, frames prefilled as they arrive",
                Sources(warm=False),
                is_fed=True,
                vllm=live,
            ),
            Method(
                "live",
                f"{together}, frames prefilled as they arrive",
                Sources(),
                is_fed=True,
                vllm=live,
            ),
        ]
        found += self._learned(together, live)
        if two_devices:
            found.append(
                Method(
                    TWO_DEVICES,
                    "vLLM alone on both devices: two GPUs by tensor parallelism, or every core",
                    resources=alone_on_two(Machine.here()),
                )
            )
        else:
            notes.append(
                "two devices: the target alone on both was not measured (--set two_devices=true);"
                " where a drafter has a device of its own, that is the baseline to ask for"
            )
        return found, notes

    def _learned(self, together: str, live: Mapping[str, Any]) -> list[Method]:
        """What knows something before the first answer: a log, a bridge."""
        found = []
        if self.memory_log is not None:
            known = Sources(memory_log=self.memory_log)
            words = f"{together}, with answers known from the start"
            found += [
                Method("warm", words, known),
                Method("live, warm", f"{words}, frames prefilled", known, is_fed=True, vllm=live),
            ]
        if self.bridge is not None:
            drafters = (*DEFAULT_DRAFTERS, f"bridge={self.bridge}")
            learned = Sources(drafters, memory_log=self.memory_log)
            words = f"{together}, and the bridge in {self.bridge.name}"
            fed = f"{words}, frames prefilled"
            found += [
                Method("bridge", words, learned),
                Method("live, bridge", fed, learned, is_fed=True, vllm=live),
            ]
            if self.drafter is not None:
                seen = "which is also shown what eventgpt's tower sees"
                found += [
                    Method("bridge, events", f"{words}, {seen}", learned, True),
                    Method("live, bridge, events", f"{fed}, {seen}", learned, True, True, live),
                ]
        return found

    def _peer(self, method: str) -> dict[str, Any]:
        config: dict[str, Any] = {
            "method": method,
            "num_speculative_tokens": self.max_draft_tokens,
        }
        if method == "ngram":
            config |= {"prompt_lookup_max": 4, "prompt_lookup_min": 2}
        return {"speculative_config": config, **PEER_DRAFTS}


def checked(path: str) -> str:
    """A model's directory as an absolute path; a name on the hub as it is."""
    return str(Path(path).resolve()) if Path(path).exists() else path
