"""Imported after all that a fork server imports: what is there now, no collection walks through.

An engine collects garbage five times while it starts, a quarter of a second each over all that vLLM
has imported: half of the start of a small one. What its process has made itself is collected.
"""

import gc

gc.collect()
gc.freeze()
