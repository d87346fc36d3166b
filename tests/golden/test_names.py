"""No name that people use comes or goes unnoticed."""

import pytest

from tests.golden.names import KEPT, imported, is_defined, names

KNOWN = KEPT.read_text().splitlines()


def test_the_same_names_are_there_as_ever():
    made = set(names())
    went = [f"went {name}" for name in KNOWN if name not in made]
    came = [f"came {name}" for name in sorted(made.difference(KNOWN))]
    assert not went + came, "\n".join(
        [*went, *came, "if it is meant: python -m tests.golden.names"]
    )


def test_there_are_names_of_every_kind():
    for name in (
        "headstart.Answer.text",
        "headstart.Headstart.close()",
        "headstart.HeadstartError",
        "headstart.speculation.drafter.DraftRequest",
        "headstart.commands lab = headstart_lab.cli:app",
        "scripts headstart = headstart.cli:main",
        "flag scheduler_cls = headstart.engine.scheduler.HeadstartScheduler",
        "flag speculative_config.model = headstart.engine.scheduler.NoProposals",
    ):
        assert name in KNOWN


@pytest.mark.parametrize("name", sorted({*imported()}))
def test_a_name_that_a_document_imports_is_defined(name):
    assert is_defined(name)
