"""Words that pass from one real tokenizer to another are the same words, spelt as usual."""

from functools import cache
from itertools import pairwise, permutations

import pytest
from tests.speculation.spellers import (
    BEGIN,
    END,
    SIGN_FIRST,
    byte_level,
    odd_sentences,
    published_llama,
    sentences,
    text_tokenizer,
    word_marks,
)

from headstart.speculation.board import MAX_DRAFT_TOKENS
from headstart.speculation.text_tokenizer import NOT_WHOLE, words_of
from headstart.speculation.translation import Translation

PROMPT = "What is it? ASSISTANT:"
KINDS = ("bytes", "sign first", "word marks", "published Llama")
PAIRS = list(permutations(KINDS, 2))
ODD = [odd for odd in odd_sentences(40) if END not in odd]


@pytest.fixture(scope="module")
def speller(tmp_path_factory):
    """The tokenizer of a kind, trained when it is first asked for."""
    makers = {
        "bytes": byte_level,
        "sign first": lambda: byte_level(SIGN_FIRST, 500),
        "word marks": word_marks,
        "no bytes": lambda: word_marks(falls_back_to_bytes=False),
        "published Llama": lambda: published_llama(tmp_path_factory.mktemp("llama")),
    }
    return cache(lambda kind: makers[kind]())


def usual(tokenizer, answer):
    """The ids of an answer, as the tokenizer makes them of the whole text after a prompt."""
    before, whole = (
        tokenizer.encode(text, add_special_tokens=False).ids for text in (PROMPT, PROMPT + answer)
    )
    assert whole[: len(before)] == before
    return tuple(whole[len(before) :])


def end_of(tokenizer):
    return tokenizer.token_to_id(END)


def both(speller, of_target, of_drafter, **openings):
    """Two tokenizers as they are, a translation between them, and both as it takes them."""
    raw = speller(of_target), speller(of_drafter)
    texts = tuple(
        text_tokenizer(tokenizer, openings.get(who, " "))
        for tokenizer, who in zip(raw, ("target", "drafter"), strict=True)
    )
    return *raw, Translation(*texts), *texts


@pytest.mark.parametrize(("of_target", "of_drafter"), PAIRS)
def test_what_a_drafter_says_becomes_the_usual_tokens_word_by_word(speller, of_target, of_drafter):
    """After each of its tokens: all its words but the last, and none changes as it goes on."""
    target, drafter, translation, written, spoken_as = both(speller, of_target, of_drafter)
    for answer in ODD:
        expected = (*usual(target, " " + answer), end_of(target))
        spoken = (*usual(drafter, " " + answer), end_of(drafter))
        drafts = [translation.draft((), spoken[:count]) or () for count in range(len(spoken) + 1)]
        assert drafts[-1] == expected
        for earlier, later in pairwise(drafts):
            assert later[: len(earlier)] == earlier
        for count, draft in enumerate(drafts[:-1]):
            finished = words_of(spoken_as.text(spoken[:count]).rstrip(NOT_WHOLE))[:-1]
            assert written.text(draft) == "".join(finished)


@pytest.mark.parametrize(("of_target", "of_drafter"), PAIRS)
def test_a_drafter_goes_on_from_any_of_the_targets_tokens(speller, of_target, of_drafter):
    """Within a word and within a character too: the rest is what the target usually says."""
    target, drafter, translation, _, spoken_as = both(speller, of_target, of_drafter)
    for answer in ODD[:20]:
        expected = (*usual(target, " " + answer), end_of(target))
        for count in range(1, len(expected)):
            said = expected[:count]
            heard = translation.heard(said)
            known = spoken_as.text(heard)
            assert (" " + answer).startswith(known)
            rest = spoken_as.ids(words_of((" " + answer)[len(known) :]))
            spoken = (*heard, *rest, end_of(drafter))
            assert translation.is_foreseen(said, spoken)
            assert translation.draft(said, spoken) == expected[count:]


@pytest.mark.parametrize(("of_target", "of_drafter"), PAIRS)
def test_a_target_with_a_spelling_of_its_own_is_followed_too(speller, of_target, of_drafter):
    """It spells a word by its letters: the draft goes on where it is, with the same words."""
    _, drafter, translation, written, spoken_as = both(speller, of_target, of_drafter)
    for answer in sentences(10, seed=3):
        words = words_of(" " + answer)
        letters = [id for letter in words[1].strip() for id in written.ids([letter])]
        said = (*written.ids(words[:1]), *written.ids([" "]), *letters)
        assert said != written.ids(words[:2]), "it is spelt as usual"
        for count in range(1, len(said) + 1):
            heard = translation.heard(said[:count])
            known = spoken_as.text(heard)
            rest = spoken_as.ids(words_of((" " + answer)[len(known) :]))
            draft = translation.draft(said[:count], (*heard, *rest, end_of(drafter)))
            assert written.text((*said[:count], *draft[:-1])) == " " + answer
            assert draft[-1] == written.end_id


@pytest.mark.parametrize("of_target", KINDS)
def test_a_word_spelt_otherwise_does_not_matter_after_the_next(speller, of_target):
    """It began the first word in its own way, and the last in the usual one."""
    _, _, translation, written, spoken_as = both(speller, of_target, "bytes")
    first = [id for letter in (" ", "T", "h", "e") for id in written.ids([letter])]
    usual_end = written.ids([" car", " 道路"])
    for count in range(len(written.ids([" car"])), len(usual_end) + 1):
        said = (*first, *usual_end[:count])
        heard = translation.heard(said)
        known = spoken_as.text(heard)
        spoken = (*heard, *spoken_as.ids([" The car 道路"[len(known) :]]), spoken_as.end_id)
        assert translation.draft(said, spoken) == (*usual_end[count:], written.end_id)


def test_a_space_that_the_target_has_said_is_left_to_the_drafters_next_word(speller):
    _, _, translation, written, spoken_as = both(speller, "word marks", "bytes")
    said = (*written.ids([" The", " car"]), *written.ids([" "]))
    assert written.text(said) == " The car "
    assert translation.heard(said) == spoken_as.ids([" The", " car"])
    spoken = (*spoken_as.ids([" The", " car", " 🚗"]), spoken_as.end_id)
    assert translation.draft(said, spoken) == (*written.ids([" 🚗"])[1:], written.end_id)
    assert translation.heard(written.ids([" "])) == ()


def test_a_word_waits_until_it_is_finished(speller):
    _, _, translation, written, spoken_as = both(speller, "word marks", "bytes")
    said, spoken = written.ids([" The"]), spoken_as.ids([" The", " cross"])
    assert translation.draft(said, spoken) is None
    assert translation.is_foreseen(said, spoken)
    spoken += spoken_as.ids(["ing"])
    assert translation.draft(said, spoken) is None
    assert translation.draft(said, (*spoken, spoken_as.end_id)) == (
        *written.ids([" crossing"]),
        written.end_id,
    )
    spoken += spoken_as.ids([" waits"])
    assert translation.draft(said, spoken) == written.ids([" crossing"])


def test_other_words_than_the_targets_are_not_drafted(speller):
    _, _, translation, written, spoken_as = both(speller, "bytes", "word marks")
    said, spoken = written.ids([" The", " car"]), spoken_as.ids([" The", " child", " waits", "."])
    assert not translation.is_foreseen(said, spoken)
    assert translation.draft(said, spoken) is None
    assert translation.heard(said) == spoken_as.ids([" The", " car"])


def test_nothing_said_and_nothing_spoken_is_no_draft(speller):
    _, _, translation, written, spoken_as = both(speller, "bytes", "word marks")
    assert translation.heard(()) == ()
    assert translation.draft((), ()) is None
    assert translation.draft(written.ids([" The"]), ()) is None
    assert translation.draft((), (spoken_as.end_id,)) == (written.end_id,)


def test_special_tokens_are_neither_drafted_nor_heard(speller):
    target, drafter, translation, written, spoken_as = both(speller, "word marks", "bytes")
    begin = target.token_to_id(BEGIN), drafter.token_to_id(BEGIN)
    spoken = (*spoken_as.ids([" The", " car", " waits"]), begin[1], *spoken_as.ids([" here", " ."]))
    assert translation.draft((), spoken) == written.ids([" The", " car"])
    assert translation.heard((*written.ids([" The"]), begin[0])) is None
    assert translation.heard((target.get_vocab_size(),)) is None
    assert translation.draft((-1,), spoken) is None


@pytest.mark.parametrize("of_target", ["bytes", "word marks"])
def test_a_word_that_reads_like_a_special_token_ends_the_draft(speller, of_target):
    """Its letters would become the token itself; nor is the answer at its end there."""
    _, _, translation, written, _ = both(speller, of_target, "bytes")
    drafter = speller("bytes")
    letters = [drafter.token_to_id(letter) for letter in "Ġ" + END]
    spoken = (*usual(drafter, " The car"), *letters, *usual(drafter, " waits."), end_of(drafter))
    draft = translation.draft((), spoken)
    assert draft == written.ids([" The", " car"])


def test_a_word_that_the_target_cannot_spell_ends_the_draft(speller):
    _, _, translation, written, spoken_as = both(speller, "no bytes", "bytes")
    spoken = (*spoken_as.ids(words_of(" The car 道路 waits.")), spoken_as.end_id)
    assert translation.draft((), spoken) == written.ids([" The", " car"])


def test_what_the_drafter_cannot_spell_it_does_not_go_on_from(speller):
    _, _, translation, written, _ = both(speller, "bytes", "no bytes")
    assert translation.heard(written.ids(words_of(" The car waits"))) is not None
    assert translation.heard(written.ids(words_of(" The 道路 waits"))) is None


def test_bytes_that_are_no_character_end_the_draft(speller):
    _, _, translation, written, spoken_as = both(speller, "word marks", "bytes")
    (*_, last) = spoken_as.ids([" 道"])
    spoken = (*spoken_as.ids([" The", " car"]), last, *spoken_as.ids([" waits", " here", "."]))
    assert NOT_WHOLE in spoken_as.text(spoken)
    assert translation.draft((), spoken) == written.ids([" The"])


def test_a_target_in_the_middle_of_another_character_is_not_drafted_for(speller):
    _, _, translation, written, spoken_as = both(speller, "word marks", "bytes")
    said = written.ids([" The", " 道"])[:-1]
    other = (*spoken_as.ids([" The", " 🚗", " waits"]), spoken_as.end_id)
    assert translation.draft(said, other) is None
    same = (*spoken_as.ids([" The", " 道", " waits"]), spoken_as.end_id)
    assert translation.draft(said, same)[0] == written.ids([" The", " 道"])[-1]


@pytest.mark.parametrize("of_target", ["bytes", "word marks"])
@pytest.mark.parametrize("of_drafter", ["sign first", "word marks"])
def test_each_model_begins_its_answer_in_its_own_way(speller, of_target, of_drafter):
    """One after a prompt that ends with a word, the other after one that ends with a space."""
    for opening, other in ((" ", ""), ("", " ")):
        openings = {"target": opening, "drafter": other}
        _, _, translation, written, spoken_as = both(speller, of_target, of_drafter, **openings)
        words, others = (words_of(each + "The car waits.") for each in (opening, other))
        spoken = (*spoken_as.ids(others), spoken_as.end_id)
        assert translation.draft((), spoken) == (*written.ids(words), written.end_id)
        assert translation.heard(written.ids(words)) == spoken_as.ids(others)
        # The target has begun in the other's way after all.
        said = written.ids(words_of(other + "The car"))
        assert translation.is_foreseen(said, spoken)
        assert translation.draft(said, spoken) == (*written.ids([" waits."]), written.end_id)


def test_no_draft_is_longer_than_a_board_reads(speller):
    _, _, translation, _, spoken_as = both(speller, "bytes", "word marks")
    spoken = spoken_as.ids([" car"] * (MAX_DRAFT_TOKENS + 9))
    assert len(translation.draft((), spoken)) == MAX_DRAFT_TOKENS
