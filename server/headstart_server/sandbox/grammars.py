"""Compiles the grammars that constrain answers, to bound the time that takes.

vLLM compiles a grammar in the server's and in the engine's process without any bound. So a worker
compiles it first, and a grammar that takes too long there never reaches vLLM.
"""

import json
from collections.abc import Mapping
from typing import Any

from headstart.errors import MediaError


class Grammars:
    """xgrammar with the target's vocabulary."""

    def __init__(self, vocabulary: str) -> None:
        """``vocabulary``: xgrammar's ``TokenizerInfo`` as it serializes itself."""
        import xgrammar

        self._xgrammar = xgrammar
        info = xgrammar.TokenizerInfo.deserialize_json(vocabulary)
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, constraint: Mapping[str, Any]) -> None:
        """Compile one field of vLLM's ``structured_outputs``; raises where xgrammar refuses it."""
        grammar = self._xgrammar.Grammar
        try:
            for kind, value in constraint.items():
                match kind:
                    case "json":
                        text = value if isinstance(value, str) else json.dumps(value)
                        self._compiler.compile_json_schema(text)
                    case "json_object":
                        self._compiler.compile_builtin_json_grammar()
                    case "regex":
                        self._compiler.compile_regex(value)
                    case "grammar":
                        self._compiler.compile_grammar(value)
                    case "choice":
                        quoted = [json.dumps(str(choice)) for choice in value]
                        ebnf = "root ::= " + " | ".join(quoted)
                        self._compiler.compile_grammar(grammar.from_ebnf(ebnf))
                    case "structural_tag":
                        text = value if isinstance(value, str) else json.dumps(value)
                        self._compiler.compile_structural_tag(text)
        except RuntimeError as error:
            raise MediaError(str(error).splitlines()[0]) from error
