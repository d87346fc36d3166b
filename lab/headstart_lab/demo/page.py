"""The demo as one self-contained HTML file: pictures, answers, and marked facts."""

import base64
import io
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headstart_lab.demo.looks import STYLESHEET
from headstart_lab.demo.showing import Shown, Side
from headstart_lab.language.facts import Fact, Finding, find
from headstart_lab.scoring import Tally

_MARKS = {Finding.RIGHT: "✓", Finding.WRONG: "✗", Finding.ABSENT: "○"}
_WORDS = {Finding.RIGHT: "right", Finding.WRONG: "wrong", Finding.ABSENT: "unsaid"}
_NAMELESS = ("is", "are", "shows", "kind")


def demo_page(shown: Sequence[Shown], command: str) -> str:
    """The page; its footer shows ``command``, which made it."""
    sides = {
        "target": [each.target for each in shown],
        "drafter": [each.drafter for each in shown],
    }
    clips = "\n".join(_clip(each) for each in shown)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>headstart lab: a drive of {len(shown)} clips</title>
<link rel="icon" href="data:,">
<style>{STYLESHEET}</style>
</head>
<body>
<header>
<h1>A drive neither model was trained on</h1>
<p>{len(shown)} seconds of the lab's drawn world, a question about each. The <b>target</b> looks at
8 frames of a colour camera, the <b>drafter</b> at the events of the last 50&nbsp;ms. Each answer is
checked for the facts that the model's own camera can see.</p>
<table>
<thead><tr><th>model</th><th class="right">✓ right</th><th class="wrong">✗ wrong</th>
<th class="absent">○ unsaid</th><th class="bar"></th></tr></thead>
<tbody>{"".join(_total(name, each) for name, each in sides.items())}</tbody>
</table>
</header>
<main>
{clips}
</main>
<footer><code>{escape(command)}</code></footer>
</body>
</html>
"""


def _total(name: str, sides: Sequence[Side]) -> str:
    tally = Tally(0, 0, 0)
    for side in sides:
        tally += Tally.of(side.said, side.truth.facts)
    counts = (("right", tally.right), ("wrong", tally.wrong), ("absent", tally.absent))
    cells = "".join(f'<td class="{kind}">{count}</td>' for kind, count in counts)
    bar = "".join(
        f'<i class="{kind}" style="flex-grow:{count}"></i>' for kind, count in counts if count
    )
    share = tally.right / max(1, tally.total)
    return (
        f'<tr id="{name}-total"><th>{name}</th>{cells}'
        f'<td class="bar"><span>{bar}</span>{share:.0%}</td></tr>'
    )


def _clip(shown: Shown) -> str:
    return f"""<article id="second-{shown.second}">
<h2><span>second {shown.second}</span> {escape(shown.question)}</h2>
<div class="sides">
{_side("target", "colour camera", "frame", shown.target, _jpeg)}
{_side("drafter", "event camera", "slice", shown.drafter, _png)}
</div>
</article>"""


def _side(
    name: str, camera: str, picture: str, side: Side, encode: Callable[[NDArray[np.uint8]], str]
) -> str:
    pictures = "".join(
        f'<img src="{encode(each)}" alt="{picture} {number} of {len(side.pictures)}"'
        f' width="{each.shape[1]}" height="{each.shape[0]}">'
        for number, each in enumerate(side.pictures, 1)
    )
    facts = "".join(_fact(side.said, fact) for fact in side.truth.facts)
    same = side.said == side.truth.text
    truth = "word for word" if same else escape(side.truth.text)
    return f"""<section class="{name}">
<h3>{name} <span>{camera}</span></h3>
<div class="pictures {picture}s">{pictures}</div>
<p class="said">{escape(side.said) or "<i>nothing</i>"}</p>
<ul>{facts}</ul>
<p class="truth"><b>truth</b> {truth}</p>
</section>"""


def _fact(said: str, fact: Fact) -> str:
    finding = find(said, fact)
    name = fact.subject if fact.attribute in _NAMELESS else f"{fact.subject}, {fact.attribute}"
    return (
        f'<li class="{finding.value}" title="{_WORDS[finding]}">'
        f"<b>{_MARKS[finding]}</b> {escape(name)}: {escape(fact.value)}</li>"
    )


def _jpeg(picture: NDArray[np.uint8]) -> str:
    return _address(Image.fromarray(picture), "jpeg", quality=88)


def _png(picture: NDArray[np.uint8]) -> str:
    # Pictures of events have three colours.
    return _address(Image.fromarray(picture).quantize(colors=8), "png", optimize=True)


def _address(image: Image.Image, kind: str, **options: Any) -> str:
    """A data URL of the picture."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
