"""What a finished answer tells of its passes."""

from headstart.engine.request_record import PassRecord, Report
from headstart.speculation.draft import NOTHING, Draft, Verdict


def test_passes_with_and_without_drafts_are_told_in_order():
    record = PassRecord()
    record.hand(Draft((1, 2, 9), "memory", 5.0))
    record.passed(start=0, num_scheduled=3, num_said=3)
    record.hand(NOTHING)
    record.passed(start=3, num_scheduled=0, num_said=1)
    report = record.report((1, 2, 3, 4), num_said=4, num_remembered=7)
    assert report.accepted == (2, 0)
    assert report.num_remembered == 7
    assert report.verdicts == (Verdict(Draft((1, 2, 9), "memory", 5.0), 2),)
    assert Report.parse(report.params()) == report


def test_only_what_vllm_took_of_a_draft_counts():
    record = PassRecord()
    record.hand(Draft((1, 2, 3, 4), "memory", 5.0))
    record.passed(start=0, num_scheduled=2, num_said=3)
    assert record.report((1, 2, 3), num_said=3).verdicts == (
        Verdict(Draft((1, 2), "memory", 5.0), 2),
    )


def test_tokens_accepted_beyond_the_end_are_not_the_answers():
    record = PassRecord()
    record.hand(Draft((1, 2, 3, 4), "memory", 5.0))
    record.passed(start=0, num_scheduled=4, num_said=5)
    report = record.report((1, 2), num_said=5)
    assert report.accepted == (2,)
    assert report.verdicts[0].num_accepted == 2


def test_a_draft_never_verified_has_no_verdict():
    record = PassRecord()
    record.hand(Draft((1,), "memory", 1.0))
    record.hand(Draft((2, 3), "eventgpt", 2.0))
    record.passed(start=0, num_scheduled=2, num_said=1)
    (verdict,) = record.report((7,), num_said=1).verdicts
    assert (verdict.draft.source, verdict.num_accepted) == ("eventgpt", 0)


def test_another_engines_parameters_are_no_report():
    assert Report.parse(None) is None
    assert Report.parse({"do_remote_prefill": True}) is None
