"""Trains small tokenizers laid out like Llama's: word pieces, and bytes for all other text."""

import json
from collections.abc import Iterable
from typing import Any

SPECIAL_TOKENS = ["<unk>", "<s>", "</s>"]
BYTE_TOKENS = [f"<0x{value:02X}>" for value in range(256)]


def train_tokenizer(
    sentences: Iterable[str], max_pieces: int, added_tokens: Iterable[str] = ()
) -> Any:
    """Fit at most ``max_pieces`` pieces to ``sentences``; any text at all can be encoded.

    ``added_tokens`` (placeholders of the model's own) come after the pieces, so a lower id
    is always text or one of Llama's three special tokens.
    """
    from tokenizers import (
        AddedToken,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    trained = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    trained.normalizer = normalizers.Prepend("▁")
    # Punctuation is split off, as in Llama's pieces. Otherwise the vocabulary of a small language
    # fills with every word twice, with and without a comma.
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="never"), pre_tokenizers.Punctuation("isolated")]
    )
    trained.train_from_iterator(
        sentences,
        BpeTrainer(
            vocab_size=max_pieces,
            special_tokens=[*SPECIAL_TOKENS, *BYTE_TOKENS],
            show_progress=False,
        ),
    )
    # The trainer marks the bytes as special tokens, which decoding drops; but bytes are text.
    state = json.loads(trained.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] in SPECIAL_TOKENS]
    tokenizer = Tokenizer.from_str(json.dumps(state))

    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1, right=0),
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", SPECIAL_TOKENS.index("<s>"))]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        clean_up_tokenization_spaces=False,
    )
    fast.add_tokens([AddedToken(t, special=True, normalized=False) for t in added_tokens])
    return fast
