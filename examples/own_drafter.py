"""Draft with a class of your own: here, the answer that another camera got to the same question.

    headstart lab drive demo
    python examples/own_drafter.py demo/target demo/second-0.mp4

A drafter has four members (`headstart.speculation.drafter.Drafter` says what each may do), and is
named as package.module:Class, or by the name under which its package registers it, as
`examples/pyproject.toml` does. vLLM's scheduler calls it before every step, so it must be quick. It
sees token ids only, and the model verifies whatever it proposes: a bad drafter costs time, never a
wrong token. Try one on logged answers first: `headstart replay`.
"""

import argparse
from collections import OrderedDict
from collections.abc import Sequence

from headstart import Headstart, Sources
from headstart.drafters.registry import Registration
from headstart.speculation.drafter import DraftRequest

MAX_QUESTIONS = 10_000


class SameQuestion:
    """Drafts the last answer to the same question on any stream of the same tenant."""

    name = "same-question"

    def __init__(self) -> None:
        self._asked: dict[str, tuple[str, str]] = {}
        self._answers: OrderedDict[tuple[str, str], tuple[int, ...]] = OrderedDict()

    def begin(self, request: DraftRequest) -> None:
        """Note what a request asks. Tenants must not learn from each other, so keep whose it is."""
        self._asked[request.id] = (request.stream.tenant, request.question)

    def propose(self, request_id: str, confirmed: Sequence[int], max_tokens: int) -> Sequence[int]:
        """Go on as the last answer did, as long as this one has begun like it."""
        last = self._answers.get(self._asked.get(request_id, ("", "")), ())
        if last[: len(confirmed)] != tuple(confirmed):
            return ()
        return last[len(confirmed) : len(confirmed) + max_tokens]

    def finish(self, request_id: str, answer: Sequence[int]) -> None:
        """Keep the answer for the next one who asks. An aborted request has none."""
        asked = self._asked.pop(request_id, None)
        if asked is None or not answer:
            return
        self._answers[asked] = tuple(answer)
        self._answers.move_to_end(asked)
        if len(self._answers) > MAX_QUESTIONS:
            self._answers.popitem(last=False)


REGISTRATION = Registration(
    SameQuestion.name, "what another camera was answered to the same", lambda *_: SameQuestion()
)


def main() -> None:
    """Ask two cameras the same, and print what became of each draft."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a Video-LLaVA: a directory, or a name on the hub")
    parser.add_argument("clip", help="a video file")
    arguments = parser.parse_args()

    # Warm memory quotes other cameras by itself, and would leave nothing to this drafter.
    sources = Sources(drafters=("memory", "own_drafter:SameQuestion"), warm=False)
    with Headstart(arguments.target, sources=sources, vllm={"enforce_eager": True}) as headstart:
        for camera in ("left camera", "right camera"):
            answer = headstart.session(camera).ask(arguments.clip, "Is it safe to go on?")
            print(f"{camera}: {answer.num_passes} passes for {len(answer.token_ids)} tokens")
            for verdict in answer.verdicts:
                draft = verdict.draft
                print(f"  {draft.source}: {verdict.num_accepted} of {len(draft.tokens)} accepted")


if __name__ == "__main__":  # vLLM's processes import this file, and must not run it
    main()
