"""Patches of vLLM 0.32, for what fails in it only where a speculative method is configured.

Each patch says what fails without it. `require_engine` pins the version; with the next one, check
whether the patch is still needed.
"""

from typing import Any


def constrain_drafts_only() -> None:
    """Skip the constraints of a step that has no drafts: vLLM's top_k fails on zero rows.

    On CPUs it takes the largest of no values, which ends the engine: any sampled request with
    ``top_k`` and without ``top_p`` did, as soon as nothing was drafted for a step.
    """
    from vllm.v1.sample import rejection_sampler

    original = rejection_sampler.apply_sampling_constraints
    if getattr(original, "skips_nothing", False):
        return

    def constrained(logits: Any, *args: Any) -> Any:
        return original(logits, *args) if len(logits) else logits

    constrained.skips_nothing = True  # type: ignore[attr-defined]
    rejection_sampler.apply_sampling_constraints = constrained
