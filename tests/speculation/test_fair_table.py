from random import Random

from headstart.speculation.fair_table import FairTable


def test_the_one_who_writes_most_loses_its_own():
    table = FairTable(10)
    table.put("quiet", "camera", 1)
    for number in range(1000):
        table.put("loud", str(number), number)
    assert len(table) == 10
    assert table.get("quiet", "camera") == 1
    assert table.get("loud", "990") is None
    assert table.get("loud", "999") == 999


def test_what_was_put_again_is_not_the_oldest():
    table = FairTable(3)
    for key in ("a", "b", "c", "a", "d"):
        table.put("", key, key)
    assert [table.get("", key) for key in "abcd"] == ["a", None, "c", "d"]


def test_a_newcomer_finds_room_among_equals():
    table = FairTable(3)
    for tenant in ("a", "b", "c", "d"):
        table.put(tenant, "camera", tenant)
    assert len(table) == 3
    assert table.get("d", "camera") == "d"
    assert table.get("a", "camera") is None


def test_nothing_crosses_from_one_tenant_to_another():
    table = FairTable(3)
    table.put("a", "camera", 1)
    assert table.get("b", "camera") is None


def test_the_count_is_right_and_no_share_falls_below_the_fair_one():
    rng, table = Random(0), FairTable(40)
    newest = {}
    for _ in range(5000):
        tenant = rng.choice(("a", "b", "b", "b", "c", "c", "c", "c", "c", "c"))
        key = rng.randrange(200)
        table.put(tenant, key, key)
        newest[tenant] = [key, *(k for k in newest.get(tenant, []) if k != key)][:13]
        assert len(table) <= 40
    held = [(t, k) for t in "abc" for k in range(200) if table.get(t, k) is not None]
    assert len(held) == len(table) == 40
    assert all(table.get(tenant, key) == key for tenant in "abc" for key in newest[tenant])
