"""Watch cameras: the same question about every window of each, answered as the windows end.

    headstart lab drive demo
    python examples/watch.py demo/target demo/second-0.mp4 demo/second-1.mp4

A camera is a file, a folder, an rtsp:// or http:// address, or /dev/video0. Frames are computed as
they arrive, so most of the work is done when a window ends. Prints how long after its last frame
each answer was there, and the drafted words before the model has said them.
"""

import argparse

from headstart import Headstart, Preview, Windows, watch
from headstart.answers.preview import Shown


def main() -> None:
    """Print every answer, and what became of the windows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a Video-LLaVA: a directory, or a name on the hub")
    parser.add_argument("cameras", nargs="+", help="files, addresses or devices")
    parser.add_argument("--question", default="Give a description of this scene.")
    parser.add_argument("--window", type=float, default=0.5, help="seconds that a question sees")
    arguments = parser.parse_args()

    def show(camera: str, shown: Shown) -> None:  # in the engine's thread: return soon
        if isinstance(shown, Preview):
            print(f"{camera}: drafted by {shown.source}: {shown.text!r}")

    with Headstart(arguments.target, vllm={"enforce_eager": True}) as headstart:
        answers = watch(
            arguments.cameras,
            arguments.question,
            headstart=headstart,
            windows=Windows(seconds=arguments.window),
            on_shown=show,
        )
        for answer in answers:
            print(f"{answer.stream}: {answer.wait_s:.2f} s after its last frame: {answer.text}")
        for camera, counts in answers.counts.items():
            print(f"{camera}: {counts.live.asked} windows asked, {counts.live.dropped} dropped")


if __name__ == "__main__":  # vLLM's processes import this file, and must not run it
    main()
