"""Real tokenizers of several kinds, trained in a moment on sentences that are made up here."""

import json
from functools import partial
from random import Random

import pytest
from tests.media.samples import sample

tokenizers = pytest.importorskip("tokenizers", reason="comes with an engine: headstart[cpu]")

from headstart.speculation.text_tokenizer import TextTokenizer
from headstart.speculation.vocabulary import TextVocabulary

UNKNOWN, BEGIN, END = SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{value:02X}>" for value in range(256)]
# Words split as newer tokenizers split them: any one sign goes with the letters after it, line
# breaks go with the signs before them, and digits by threes.
SIGN_FIRST = (
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

NAMES = ("car", "van", "tram", "cyclist", "child", "crossing", "lorry", "umbrella", "signpost")
DEEDS = ("waits", "stops", "turns", "crosses", "overtakes", "brakes", "accelerates", "disappears")
PLACES = ("behind", "beside", "before", "near", "above", "underneath", "opposite")
ODD = (
    "🚗",
    "👩‍👧",
    "naïve",
    "Straße",
    "cafe\u0301",
    "道路",
    "شارع",
    "don't",
    "3.14",
    "1,024",
    "...",
    "—",
    "(left)",
    "e.g.",
    "\n",
    "\n\n- ",
    "\t",
    "  ",
    "\u00a0",
    "</s>",
    "<unk",
    "C++;",
    "x" * 30,
)


def sentences(count, seed=0):
    """Plain sentences, for tokenizers to learn their pieces from."""
    rng = Random(seed)
    for _ in range(count):
        first, second = rng.sample(NAMES, 2)
        start = rng.choice(("The", "A red", "One more", "No"))
        yield f"{start} {first} {rng.choice(DEEDS)} {rng.choice(PLACES)} the {second}, at last."


def odd_sentences(count, seed=1):
    """Sentences with what is hard to spell between their words, and within them."""
    rng = Random(seed)
    for sentence in sentences(count, seed):
        words = sentence.split()
        for _ in range(rng.randrange(6)):
            place = rng.randrange(1, len(words) + 1)
            words.insert(place, rng.choice(ODD) + rng.choice(("", rng.choice(ODD))))
        yield "".join(word + rng.choice((" ", " ", " ", "", "\n")) for word in words)


def byte_level(pattern=None, num_pieces=700):
    """Bytes and pieces of them, a space standing before its word: like GPT's and Qwen's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if pattern is not None:
        trained.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    trained.decoder = decoders.ByteLevel()
    trained.train_from_iterator(
        sentences(400),
        trainers.BpeTrainer(
            vocab_size=num_pieces,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return trained


def word_marks(num_pieces=700, falls_back_to_bytes=True):
    """Words behind a mark, unknown characters in bytes: like Llama's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    trained = Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=falls_back_to_bytes))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    special = [*SPECIAL, *BYTES] if falls_back_to_bytes else SPECIAL
    trained.train_from_iterator(
        sentences(400),
        trainers.BpeTrainer(vocab_size=num_pieces, special_tokens=special, show_progress=False),
    )
    # The trainer calls the bytes special too, but they are text.
    state = json.loads(trained.to_str())
    state["added_tokens"] = [each for each in state["added_tokens"] if each["content"] in SPECIAL]
    trained = Tokenizer.from_str(json.dumps(state))
    trained.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return trained


def published_llama(directory):
    """Llama's own, of 32,000 pieces."""
    transformers = pytest.importorskip("transformers")
    (directory / "tokenizer.model").symlink_to(sample("llama-tokenizer.model"))
    return transformers.LlamaTokenizer.from_pretrained(directory).backend_tokenizer


def text_tokenizer(tokenizer, opening=" "):
    """The same as the code under test takes it."""
    special = {tokenizer.token_to_id(piece) for piece in SPECIAL}
    return TextTokenizer(
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        partial(tokenizer.decode, skip_special_tokens=False),
        TextVocabulary.of(tokenizer.get_vocab_size(), special),
        tokenizer.token_to_id(END),
        opening,
    )
