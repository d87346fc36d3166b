from dataclasses import dataclass

from headstart.speculation.earnings import Earnings


@dataclass(frozen=True)
class Stream:
    tenant: str
    name: str


def test_a_tenant_of_many_streams_makes_nobody_else_forget():
    earnings, quiet = Earnings(max_keys=20), Stream("quiet", "camera")
    for _ in range(20):
        earnings.credit("drafter", quiet, [(8, 8)])
    judged = earnings.survival("drafter", quiet)
    for number in range(100):
        earnings.credit("drafter", Stream("loud", str(number)), [(8, 0)])
    assert len(earnings) == 20
    assert earnings.survival("drafter", quiet) == judged
    assert earnings.survival("drafter", Stream("loud", "new")).shares[0] < 0.1
