"""`headstart serve`, of which each function of ours that runs is noted.

    python -m tests.serve.watched_server FILE serve --config ...

A test says with a `Turn` of the same file what to note.
"""

import sys
from pathlib import Path

from tests.engine.walks import Watch

if __name__ == "__main__":
    Watch(Path(sys.argv.pop(1))).begin()
    from headstart.cli import main

    main()
