"""The card of a bridge: a README.md as model hubs show it."""

from collections.abc import Mapping
from typing import Any

from headstart_research.bridge.config import BridgeConfig, Verifier
from headstart_research.bridge.hub import is_hub_name


def card(config: BridgeConfig, verifier: Verifier, results: Mapping[str, Any]) -> str:
    """In markdown, with the fields of a hub before it."""
    features = ", ".join(
        f"`{feature.name}` ({feature.max_tokens} tokens of {feature.size})"
        for feature in config.features
    )
    answers, confidence = results["answers"], results["calibration"]
    schedule = results["schedule"]
    steps = f"{schedule['num_steps']} steps of {schedule['batch_size']} answers"
    # A hub links a card to the model it names, and refuses a card that names a path.
    base = f"base_model: {verifier.name}\n" if is_hub_name(verifier.name) else ""
    kept_back = f"{answers['held_out'][-1][1]:.3f} on streams kept back"
    return f"""---
library_name: headstart
{base}tags:
- speculative-decoding
- headstart
---

# A bridge for {verifier.name}

A small drafter for [headstart](https://pypi.org/project/headstart/). It guesses the words of one
target from the earlier answers on a camera's stream and from vision features. The target verifies
every word, so the bridge changes how long an answer takes and never what it says.

| | |
|---|---|
| target | {verifier.name} ({", ".join(verifier.architectures)}), digest `{verifier.digest}` |
| size | {config.num_layers} layers, {config.width} wide, {config.vocabulary_size} words |
| looks at | {features or "nothing"}; any of them may be missing |
| trained | {steps}, seed {schedule["seed"]} |
| loss of a token | {answers["loss"]:.3f} learnt, {kept_back} |
| confidence | error {confidence["error_after"]:.3f} on streams kept back |

Token ids are those of this target's tokenizer (digest `{verifier.tokenizer}`). With another target
the drafts are refused, and the bridge costs time only.

```python
from headstart import Headstart, Sources
from headstart_research.bridge.hub import bridge_directory

bridge = bridge_directory("owner/model")  # this bridge, by its name on the hub
sources = Sources(drafters=("memory", "ngram", f"bridge={{bridge}}"))
with Headstart("{verifier.name}", sources=sources) as headstart:
    print(headstart.ask("street.mp4", "What is happening?").text)
```
"""
