"""A training run of a bridge: from records to a directory that `BridgeDrafter.load` reads.

The output directory gets the bridge (``config.json``, ``model.safetensors``, digests, a card) and
``training/`` with the saved states, ``results.json`` and a picture of the curve. A run that was
killed goes on when it is started again.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headstart.doctor.digests import write_digests
from headstart.errors import TrainingError
from headstart_research.bridge.bridge import OF_DRAFT, TO_TARGET
from headstart_research.bridge.config import BridgeConfig, FeatureSize, Verifier, write_config
from headstart_research.bridge.hub import CARD, WEIGHTS
from headstart_research.bridge.network import calibrated
from headstart_research.bridge.pooling import MAX_TOKENS
from headstart_research.bridge.vocabulary import DraftVocabulary
from headstart_research.collect.learnable import learnable_manifest
from headstart_research.collect.record import Record
from headstart_research.collect.shard_files import collected
from headstart_research.training import calibration
from headstart_research.training.bridge_card import card
from headstart_research.training.bridge_data import BridgeData, kind_of_feature
from headstart_research.training.bridge_model import BridgeModel
from headstart_research.training.bridge_task import BridgeTask
from headstart_research.training.curve import draw_curve
from headstart_research.training.loop import Report, train
from headstart_research.training.optimizer import optimizer_of
from headstart_research.training.place import check_place
from headstart_research.training.savepoint import History, Savepoint
from headstart_research.training.schedule import TrainSchedule

MAX_WORDS = 8192
_END_SHARE = 0.01  # of the answers that ended by themselves

Say = Callable[[str], None]


@dataclass(frozen=True)
class BridgeRun:
    """What to train on what. Texts, answers without clips, are learnt first."""

    records: Path
    output: Path
    sizes: BridgeConfig
    """Its vocabulary and features are replaced by those of the records."""
    schedule: TrainSchedule
    texts: Path | None = None
    text_schedule: TrainSchedule | None = None
    save_every_s: float = 120.0
    num_threads: int = 1

    def train(self, say: Say, report: Callable[[str], Report]) -> Path:
        torch.set_num_threads(self.num_threads)
        notes = self.output / "training"
        check_place(self.output, has_begun=notes.exists())
        notes.mkdir(parents=True, exist_ok=True)
        verifier = verifier_of(self.records)
        records = list(collected(self.records))
        texts = list(collected(self.texts)) if self.texts is not None else []
        vocabulary = DraftVocabulary.used_in(
            (record.answer_ids for record in [*records, *texts]),
            verifier.vocabulary_size,
            MAX_WORDS,
        )
        config = replace(
            self.sizes,
            vocabulary_size=len(vocabulary),
            features=feature_sizes(records),
            end_ids=tuple(int(own) for own in vocabulary.own(end_tokens([*records, *texts]))),
        )
        torch.manual_seed(self.schedule.seed)
        model = BridgeModel(config)
        num_weights = sum(parameter.numel() for parameter in model.parameters())
        say(
            f"{num_weights / 1e6:.2f}M parameters, {len(vocabulary)} words,"
            f" {len(records)} answers, {len(texts)} texts before them"
        )
        data = BridgeData(records, vocabulary, [feature.name for feature in config.features])
        histories = {}
        if texts and self.text_schedule is not None:
            text_data = BridgeData(_asked_alike(texts, records), vocabulary, ())
            histories["texts"] = self._learn(model, text_data, self.text_schedule, "texts", report)
        histories["answers"] = self._learn(model, data, self.schedule, "answers", report)
        confidence = self._calibrate(model, data)
        self._save(model, vocabulary, verifier, histories, confidence)
        return self.output

    def _learn(
        self,
        model: BridgeModel,
        data: BridgeData,
        schedule: TrainSchedule,
        name: str,
        report: Callable[[str], Report],
    ) -> History:
        history = train(
            model,
            optimizer_of(model, schedule.weight_decay),
            BridgeTask(model, data, schedule),
            schedule,
            Savepoint(self.output / "training" / f"{name}.pt"),
            self.save_every_s,
            report(name),
        )
        title = f"bridge, {name}, seed {schedule.seed}"
        picture = self.output / "training" / f"{name}.png"
        draw_curve(picture, title, history.losses, history.held_out)
        return history

    def _calibrate(self, model: BridgeModel, data: BridgeData) -> dict[str, float]:
        names = [feature.name for feature in model.config.features]
        model.eval()
        chances, right = calibration.judged_guesses(model, data, names)
        slope, offset = calibration.fit(chances, right)
        model.calibration.copy_(torch.tensor([slope, offset]))
        fitted = calibrated(chances, np.array([slope, offset]))
        return {
            "slope": slope,
            "offset": offset,
            "right": float(right.mean()),
            "error_before": calibration.error(chances, right),
            "error_after": calibration.error(fitted, right),
        }

    def _save(
        self,
        model: BridgeModel,
        vocabulary: DraftVocabulary,
        verifier: Verifier,
        histories: dict[str, History],
        confidence: dict[str, float],
    ) -> None:
        from safetensors.torch import save

        sayable = torch.zeros(vocabulary.target_size, dtype=torch.bool)
        sayable[torch.from_numpy(vocabulary.target_ids)] = True
        offsets = torch.from_numpy(vocabulary.target_ids - np.arange(len(vocabulary)))
        # A draft may be wrong, so 16 bits are enough.
        halves = {name: weight.half() for name, weight in model.saved_weights().items()}
        weights = {**halves, TO_TARGET: offsets, OF_DRAFT: sayable}
        write_config(self.output, model.config, verifier)
        (self.output / WEIGHTS).write_bytes(save(weights, metadata={"format": "pt"}))
        write_digests(self.output)
        results = {
            "schedule": asdict(self.schedule),
            "text_schedule": asdict(self.text_schedule) if self.text_schedule else None,
            "calibration": confidence,
            **{
                name: {
                    "seconds": round(history.seconds, 1),
                    "loss": float(np.mean(history.losses[-20:])),
                    "held_out": history.held_out,
                }
                for name, history in histories.items()
            },
        }
        path = self.output / "training" / "results.json"
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        text = card(model.config, verifier, results)
        (self.output / CARD).write_text(text, encoding="utf-8")


def feature_sizes(records: Sequence[Record]) -> tuple[FeatureSize, ...]:
    """Of the features in the records, in the order in which they are known: events first."""
    sizes: dict[str, int] = {}
    tokens: Counter[str] = Counter()
    for record in records:
        for name, seen in record.features.items():
            if len(seen):
                sizes[name] = seen.shape[1]
                tokens[name] = min(MAX_TOKENS, max(tokens[name], len(seen)))
    names = sorted(sizes, key=lambda name: (kind_of_feature(name) == "target", name))
    return tuple(FeatureSize(name, sizes[name], tokens[name]) for name in names)


def end_tokens(records: Iterable[Record]) -> list[int]:
    """The tokens that answers end with which ended by themselves."""
    ends = Counter(
        record.answer_ids[-1]
        for record in records
        if record.finish_reason in ("", "stop") and record.answer_ids
    )
    return [token for token, count in ends.items() if count >= _END_SHARE * ends.total()]


def verifier_of(folder: Path) -> Verifier:
    """The target of a folder of records, as its manifest names it."""
    target = learnable_manifest(folder).target
    config = _config_of(target.name)
    size = config.get("text_config", {}).get("vocab_size") or config.get("vocab_size")
    if not isinstance(size, int):
        raise TrainingError(f"the config of {target.name} names no vocab_size")
    architectures = tuple(config.get("architectures", ()))
    return Verifier(target.name, architectures, target.digest, target.tokenizer, size)


def _config_of(name: str) -> dict[str, Any]:
    from transformers import PretrainedConfig

    try:
        config, _ = PretrainedConfig.get_config_dict(name)
    except OSError as error:
        raise TrainingError(
            f"the records are of {name}, whose config.json cannot be read ({error}): run this where"
            " the target is"
        ) from error
    return dict(config)


def _asked_alike(texts: Sequence[Record], records: Sequence[Record]) -> list[Record]:
    """Texts with the prompts of the same questions in the records: a log has none."""
    prompts = {record.question: record.prompt_ids for record in records if record.prompt_ids}
    return [replace(text, prompt_ids=prompts.get(text.question, text.prompt_ids)) for text in texts]
