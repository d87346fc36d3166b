"""What documents say was measured is what the results say."""

import json
from pathlib import Path

import pytest

from tests.figures import RESULTS, Figure, figures_of

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_figure_is_the_measured_one(document):
    figures = figures_of(document.read_text())
    if document.name == "README.md":
        assert figures, "README has figures, and each must carry its mark"
    for figure in figures:
        assert figure.shown == figure.measured(), f"{document.name}: {figure}"


def test_a_figure_that_differs_or_leads_nowhere_is_found(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"summary": {"a b": [1.234]}}))
    (figure,) = figures_of("<!--figure run.json summary/a b/0 .2f-->1.25<!--/figure-->")
    assert figure.measured(tmp_path) == "1.23" != figure.shown
    with pytest.raises(KeyError):
        Figure("run.json", "summary/c", ".2f", "1").measured(tmp_path)
    with pytest.raises(AssertionError, match=r"not in benchmarks/results"):
        Figure("gone.json", "summary", ".2f", "1").measured(tmp_path)
    for misspelt in (
        "<!--figure run.json-->1<!--/figure-->",
        "<!-- figure a b c-->1<!--/figure-->",
    ):
        with pytest.raises(AssertionError, match="misspelt"):
            figures_of(misspelt)


def test_every_result_says_where_and_when_it_was_measured():
    files = sorted(RESULTS.glob("*.json"))
    assert files
    for file in files:
        result = json.loads(file.read_text())
        about = {**result, **result.get("environment", {})}
        assert about["machine"], file.name
        assert about["date"][:2] == "20", file.name
