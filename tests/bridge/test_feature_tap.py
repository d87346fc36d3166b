"""The tap's own rules: what it keeps, and for how long."""

from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = pytest.mark.engine


@pytest.fixture
def tap(monkeypatch):
    from vllm.distributed.ec_transfer.ec_connector.base import ECConnectorRole

    from headstart_research.bridge import feature_tap

    monkeypatch.setattr(feature_tap, "MAX_BYTES", 100)
    role = SimpleNamespace(is_ec_producer=True, is_ec_consumer=True)
    config = SimpleNamespace(ec_transfer_config=role)
    return feature_tap.FeatureTap(config, ECConnectorRole.WORKER)


def saved(tap, name, value, size=10):
    import torch

    computed = {name: torch.full((2, size), value)}  # 40 bytes as float16
    tap.save_caches(computed, name)
    return computed[name]


def values(found):
    return [None if f is None else np.frombuffer(f[1], "<f2").reshape(f[0])[0, 0] for f in found]


def test_what_is_taken_is_there_once_also_where_it_is_named_twice(tap):
    saved(tap, "a", 1.5)
    assert values(tap.take(["a", "b", "a"])) == [1.5, None, 1.5]
    assert values(tap.take(["a"])) == [None]


def test_a_copy_does_not_change_with_what_vllm_does_to_the_original(tap):
    saved(tap, "a", 1.5).zero_()
    assert values(tap.take(["a"])) == [1.5]


def test_the_oldest_are_dropped_when_nobody_takes_them(tap):
    for number, name in enumerate("abcab"):
        saved(tap, name, float(number))
    assert values(tap.take(["a", "b", "c"])) == [3.0, 4.0, None]
    saved(tap, "large", 7.0, size=1000)  # one is always kept
    assert values(tap.take(["large"])) == [7.0]
    saved(tap, "a", 1.0)
    saved(tap, "b", 2.0)
    assert values(tap.take(["a", "b"])) == [1.0, 2.0]


def test_vllm_is_offered_nothing(tap):
    saved(tap, "a", 1.5)
    assert not tap.has_cache_item("a")
