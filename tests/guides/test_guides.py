"""Every block of every guide is run, in order, or says why it is not."""

import ast

import pytest

from tests.documents import DOCUMENTS, ROOT, RUN_ELSEWHERE, WALKED, every_block
from tests.guides.place import furnish
from tests.guides.walk import Walk, forked

COMMANDS = ("bash", "sh", "console")
OTHERS = [path for path in DOCUMENTS if path not in WALKED and path.parent.name != "reference"]
MAX_NOT_RUN = 5
LONG = {"first-five-minutes", "model", "serving"}
"""README's commands are much the same, and the nightly run walks through them all as a person."""


def by_length(document):
    return pytest.param(
        document, marks=pytest.mark.nightly if document.stem in LONG else (), id=document.stem
    )


@pytest.mark.engine
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("document", map(by_length, WALKED))
def test_a_document_is_walked_through(document, tmp_path):
    furnish(tmp_path)
    walk = Walk(document, tmp_path, forked)
    try:
        walk.run()
    finally:
        walk.close()
    assert walk.num_run


def test_few_blocks_are_not_run_and_each_says_why(capsys):
    reasons = [
        f"{document.relative_to(ROOT)}, {language}: {reason}"
        for document in (*WALKED, *OTHERS)
        for reason, language, _ in every_block(document)
        if reason
    ]
    with capsys.disabled():
        print(f"\n{len(reasons)} blocks of documents are not run:", *reasons, sep="\n  ")
    assert len(reasons) <= MAX_NOT_RUN


@pytest.mark.parametrize("document", OTHERS, ids=lambda path: path.stem)
def test_what_claims_to_be_a_command_elsewhere_is_run_by_a_test(document):
    """A block of `text` shows commands, for hours or with names of one's own: they are parsed."""
    for reason, language, code in every_block(document):
        if language in COMMANDS and not reason:
            test = RUN_ELSEWHERE.get(document.name)
            assert test, f"{document.name}: nothing runs\n{code}"
            assert document.stem.lower() in (ROOT / test).read_text().lower()


@pytest.mark.parametrize("document", OTHERS, ids=lambda path: path.stem)
def test_python_elsewhere_is_python_and_names_what_there_is(document):
    """Such blocks are parts: of what they import, all is there."""
    pytest.importorskip("vllm", reason="needs an engine: headstart[cpu]")
    for _, language, code in every_block(document):
        if language in ("python", "py"):
            tree = ast.parse(code)
            imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
            exec(compile(ast.Module(imports, []), document.name, "exec"), {})
            compile(code, document.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
