"""Computes the figures of the project's first notes again; docs/notes-checked.md discusses them.

    python -m benchmarks.notes_checked

Each figure is computed from the notes' own inputs and from those recorded later on the same machine
(one RTX 4090, NF4). Video-LLaVA takes 8 frames of 257 tokens; it prefills in 326 ms and decodes a
token in 13.8 ms, where the notes have 568 and 35 ms. Prints the tables, then one line of JSON.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from headstart.planner.costs import Costs, DrafterCosts
from headstart.planner.forecast import Forecast, bare, one_fused_block
from headstart.planner.survival import Survival

NOTED = Costs(prefill_s=0.568, step_s=0.035)
NOTED_DRAFTER = DrafterCosts(prefill_s=0.066, step_s=0.018)
RECORDED = Costs(prefill_s=0.326, step_s=0.0138)
RECORDED_DRAFTER = DrafterCosts(prefill_s=0.083, step_s=0.018)
LATER_NOTED = Costs(prefill_s=0.315, step_s=0.0145)

NOTED_ACCEPTANCE = 0.7
NOTED_BLOCK = 28
REPLAYED_ACCEPTED = 0.007  # of the drafter's first block; docs/replay.md, row "drafter raw"
REPLAYED_PASSES = 50 / 6.37  # of memory, for 50 tokens; the same table
ANSWER_TOKENS = 50

HIDDEN = {5: 0.97, 20: 1.30, 50: 1.62, 100: 1.52}
"""Answer tokens, and the speed-up the notes give to a block drafted during the prefill."""
IN_TURN = {(0.6, 4): 1.45, (0.7, 8): 1.82, (0.8, 16): 2.35, (0.9, 16): 2.67}
"""Acceptance and draft length, and the speed-up the notes give to drafting in turn."""
SKIPPED_PREFILL_MS = {"adapted KV": (86, 2.85), "prefill in parallel": (120, 2.52)}
"""Ways to skip the target's prefill: what is left of it, and the speed-up at 5 tokens."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [self.headings, tuple("---" for _ in self.headings), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables() -> tuple[Table, ...]:
    """All tables, in the order of docs/notes-checked.md."""
    return (
        Table("Single figures", ("claim", "notes", "is", "holds"), tuple(_figures())),
        Table(
            "A block drafted while the target prefills",
            ("answer", "notes", "their inputs", "recorded inputs", "and acceptance"),
            tuple(_hidden()),
        ),
        Table(
            "Drafting and verifying in turn, after the prefill",
            ("acceptance, draft", "notes", "tokens a pass", "in turn", "draft for nothing"),
            tuple(_in_turn()),
        ),
        Table(
            "Skipping the target's prefill",
            ("way", "notes, 5 tokens", "5 tokens", "50 tokens", "50, recorded inputs"),
            tuple(_skipped()),
        ),
    )


def _figures() -> Iterator[tuple[str, ...]]:
    accepted = Survival.independent(0.279, 26).tokens_per_pass - 1
    later = bare(LATER_NOTED, ANSWER_TOKENS)
    six, fewer = (one_fused_block(LATER_NOTED, ANSWER_TOKENS, e) for e in (6, accepted))
    half = Costs(RECORDED.prefill_s / 2, RECORDED.step_s)
    yield "tokens of an 8-frame prompt", "4643", f"{8 * ((224 // 14) ** 2 + 1) + 20}", "no"
    yield (
        "tokens drafted within the prefill, first note",
        "28",
        str(NOTED_DRAFTER.tokens_within(NOTED.prefill_s)),
        "yes",
    )
    yield (
        "the same with later figures",
        "26",
        str(RECORDED_DRAFTER.tokens_within(LATER_NOTED.prefill_s)),
        "no",
    )
    yield "accepted of 26 at 27.9% each", "6", f"{accepted:.2f}", "no"
    yield "speed-up of that block", _x(six, later), _x(fewer, later), "no"
    yield "verifying 28 drafted tokens", "980 ms", "35 ms and a little", "no"
    yield "prefill in parallel, nothing verified", "1.22x", "1.00x", "no"
    yield (
        "halving a prefill of 100 ms beside 900 ms of decoding",
        "1.05x",
        f"{1000 / 950:.2f}x",
        "yes",
    )
    yield (
        "the same with recorded inputs",
        "",
        _x(bare(half, ANSWER_TOKENS), bare(RECORDED, ANSWER_TOKENS)),
        "",
    )
    remembered = RECORDED.prefill_s + (REPLAYED_PASSES - 1) * RECORDED.step_s
    speedup = bare(RECORDED, ANSWER_TOKENS).end_to_end_s / remembered
    yield "50 tokens in the passes memory needs", "", f"{speedup:.2f}x", ""


def _hidden() -> Iterator[tuple[str, ...]]:
    expected = Survival.independent(NOTED_ACCEPTANCE, NOTED_BLOCK).tokens_per_pass - 1
    for num_tokens, noted in HIDDEN.items():
        cells = [
            _x(one_fused_block(costs, num_tokens, accepted), bare(costs, num_tokens))
            for costs, accepted in (
                (NOTED, min(expected, num_tokens - 1)),
                (RECORDED, min(expected, num_tokens - 1)),
                (RECORDED, REPLAYED_ACCEPTED),
            )
        ]
        yield f"{num_tokens} tokens", f"{noted:.2f}x", *cells


def _in_turn() -> Iterator[tuple[str, ...]]:
    share = NOTED_DRAFTER.step_s / NOTED.step_s
    for (acceptance, length), noted in IN_TURN.items():
        per_pass = Survival.independent(acceptance, length).tokens_per_pass
        in_turn = per_pass / (1 + share * length)
        yield (
            f"{acceptance:.0%}, {length}",
            f"{noted:.2f}x",
            f"{per_pass:.2f}",
            f"{in_turn:.2f}x",
            f"{per_pass:.2f}x",
        )


def _skipped() -> Iterator[tuple[str, ...]]:
    for way, (left_ms, noted) in SKIPPED_PREFILL_MS.items():
        yield (
            way,
            f"{noted:.2f}x",
            *(
                _x(bare(Costs(left_ms / 1e3, costs.step_s), num_tokens), bare(costs, num_tokens))
                for costs, num_tokens in ((NOTED, 5), (NOTED, 50), (RECORDED, 50))
            ),
        )


def _x(ours: Forecast, alone: Forecast) -> str:
    return f"{ours.speedup_over(alone):.2f}x"


def main() -> None:
    """Print the tables."""
    for table in tables():
        print(f"{table.title}\n\n{table.markdown()}\n")
    print(json.dumps({table.title: table.rows for table in tables()}))


if __name__ == "__main__":
    main()
