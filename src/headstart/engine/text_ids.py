"""Which of a model's token ids are text, read from its config, whatever the model."""

from typing import Any

from headstart.speculation.vocabulary import TextVocabulary


def text_vocabulary(hf_config: Any) -> TextVocabulary:
    """Everything in the vocabulary but the ids the config names as placeholders or marks.

    Configs name them ``image_token_index``, ``video_token_id``, ``bos_token_id`` and the like.
    The token that ends an answer is as good a draft as any.
    """
    text_config = hf_config.get_text_config()
    named = {
        value
        for config in (hf_config, text_config)
        for name, value in config.to_dict().items()
        if name.endswith(("_token_id", "_token_index"))
        and not name.startswith("eos_")
        and isinstance(value, int)
    }
    return TextVocabulary.of(text_config.vocab_size, named)
