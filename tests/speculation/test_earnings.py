from dataclasses import dataclass

from headstart.speculation.draft import Draft
from headstart.speculation.earnings import LATER, OPENING, Earnings, Judged, draft_kind


@dataclass(frozen=True)
class Stream:
    tenant: str
    name: str


def test_a_tenant_of_many_streams_makes_nobody_else_forget():
    earnings, quiet = Earnings(max_keys=20), Stream("quiet", "camera")
    for _ in range(20):
        earnings.credit("drafter", quiet, [Judged(OPENING, 8, 8)])
    judged = earnings.survival("drafter", quiet, OPENING)
    for number in range(100):
        earnings.credit("drafter", Stream("loud", str(number)), [Judged(OPENING, 8, 0)])
    assert len(earnings) == 20
    assert earnings.survival("drafter", quiet, OPENING) == judged
    assert earnings.survival("drafter", Stream("loud", "new"), OPENING)[0] < 0.1


def draft(start: int, match: int) -> Draft:
    return Draft((1, 2), "memory", 0.0, start, match)


def test_kinds_are_how_an_answer_begins_and_how_long_a_match_found_the_rest():
    assert draft_kind(draft(0, 1)) == OPENING
    assert draft_kind(draft(7, 0)) == LATER
    by_match = [draft_kind(draft(40, match)) for match in (1, 2, 3, 4, 7, 8, 31, 32, 99)]
    assert by_match == [2, 3, 3, 4, 4, 5, 6, 6, 6]


def test_a_short_match_is_not_believed_because_long_ones_were_right():
    earnings, camera = Earnings(), Stream("tenant", "camera")
    long, short = draft_kind(draft(40, 16)), draft_kind(draft(40, 1))
    for _ in range(20):
        earnings.credit("memory", camera, [Judged(long, 32, 30), Judged(short, 32, 1)])
    assert earnings.survival("memory", camera, long)[20] > 0.4
    assert earnings.survival("memory", camera, short)[3] < 0.1
    # A match of a length never seen is expected to be as later drafts are together.
    middle = earnings.survival("memory", camera, draft_kind(draft(40, 5)))
    assert middle == earnings.survival("memory", camera, LATER)
    assert 0.3 < middle[3] < 0.7
    # Whether to ask is decided by the best that may come, in which order by the usual.
    assert earnings.best_survival("memory", camera, is_opening=False)[20] > 0.4
    assert earnings.accepted("memory", camera, is_opening=False) < 25
