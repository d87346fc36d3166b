"""The parts of `headstart ask` that need no engine."""

from rich.console import Console

from headstart.answers.preview import Confirmed, Preview, Retracted
from headstart.answers.timeline import Span, Stage, Timeline
from headstart.cli.ask import stage_table, verdict_table
from headstart.cli.output import AnswerText, answer_screen
from headstart.speculation.draft import Draft, Verdict


def test_the_table_draws_each_stage_where_it_happened():
    timeline = Timeline.of(0.0, 4.0, [Span(Stage.LOAD, 0, 1), Span(Stage.DECODE, 2, 4)])
    console = Console(width=100)
    with console.capture() as capture:
        console.print(stage_table(timeline))
    rows = {line.split()[0]: line for line in capture.get().splitlines() if line.split()}
    assert "1000.0" in rows["load"]
    assert rows["load"].count("█") == 10
    assert rows["decode"].count("█") == 20
    assert rows["decode"].rstrip().endswith("█")
    assert "█" not in rows["vision"]
    assert "1000.0" in rows["between"]


def printed(table):
    console = Console(width=100)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_two_engines_are_drawn_on_one_scale():
    target = Timeline.of(1.0, 5.0, [Span(Stage.PREFILL, 1, 3), Span(Stage.DECODE, 3, 5)])
    drafter = Timeline.of(1.0, 3.0, [Span(Stage.PREFILL, 1, 2), Span(Stage.DECODE, 2, 3)])
    first, second = printed(stage_table(target, drafter)).split("drafter")
    bars = [
        next(line for line in part.splitlines() if line.startswith(stage))
        for part in (first, second)
        for stage in ("prefill", "decode")
    ]
    assert [bar.count("█") for bar in bars] == [20, 20, 10, 10]
    assert bars[0].index("█") == bars[2].index("█")
    assert bars[3].index("█") == bars[0].index("█") + 10


def test_each_draft_is_drawn_with_its_verdict():
    verdicts = [
        Verdict(Draft((1, 2, 3, 4), "memory", 2.5), 3),
        Verdict(Draft((5, 6), "eventgpt", 2.75, 4), 0),
    ]
    first, second = printed(verdict_table(verdicts, start_s=2.0)).splitlines()[1:]
    assert first.split()[:2] == ["memory", "500.0"]
    assert (first.count("█"), first.count("░")) == (3, 1)
    assert "3 of 4" in first
    assert (second.count("█"), second.count("░")) == (0, 2)
    assert "token 4" in second


def test_elsewhere_than_on_a_terminal_only_confirmed_text_is_printed():
    console = Console(width=100, force_terminal=False)
    with console.capture() as capture, answer_screen(console) as show:
        for shown in (Preview("The car", "memory"), Confirmed("The "), Retracted("car")):
            show(shown)
        show(Confirmed("bus."))
    assert capture.get() == "The bus.\n"


def test_on_a_terminal_drafted_words_are_dim():
    console = Console(width=100, force_terminal=True, color_system="standard")
    with console.capture() as capture, answer_screen(console) as show:
        show(Preview("The car", "memory"))
        show(Confirmed("The "))
    assert "The \x1b[2mcar" in capture.get()


def test_a_preview_that_is_confirmed_or_taken_back_is_no_longer_one():
    text = AnswerText()
    for shown, kept in (
        (Preview("The car", "memory"), ("", "The car")),
        (Confirmed("The "), ("The ", "car")),
        (Retracted("car"), ("The ", "")),
        (Confirmed("bus."), ("The bus.", "")),
    ):
        text.add(shown)
        assert (text.confirmed, text.preview) == kept
