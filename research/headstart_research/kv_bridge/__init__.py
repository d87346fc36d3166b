"""A KV bridge: a target's keys and values of a clip, guessed from what an event model saw."""
