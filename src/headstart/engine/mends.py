"""What of vLLM 0.32 fails only where drafts can be checked, mended in the worker's process.

Each mend says what fails. `require_engine` pins the version; with the next one, look whether it is
still needed.
"""

from typing import Any


def constrain_drafts_only() -> None:
    """A step without drafts has no rows to constrain, and top_k fails on none of them.

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
