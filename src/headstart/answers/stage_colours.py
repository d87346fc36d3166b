"""The colour of each stage of an answer: one on every page and picture, and in the terminal.

They are seen on white and on black. No curve of a chart has one of them, and the first few curves
have none that is like them.
"""

from headstart.answers.timeline import Stage

STAGE_COLOURS = {
    Stage.LOAD: "#8a8f98",
    Stage.PREPROCESS: "#6fa3a8",
    Stage.VISION: "#8d6fb0",
    Stage.PREFILL: "#5b84b1",
    Stage.DECODE: "#d98e2b",
}
