"""Ask one camera the same question every second: earlier answers draft the next one.

    headstart lab drive demo
    python examples/session.py demo/target demo/second-*.mp4

Prints how many passes of the model each answer took; without drafts each token takes one.
For the last clip it prints the drafted words as they are shown before the model has said them.
"""

import argparse
import asyncio

from headstart import Answer, Confirmed, Headstart, Preview, Retracted


def main() -> None:
    """Ask about each clip in turn, and about the last one again with previews."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a Video-LLaVA: a directory, or a name on the hub")
    parser.add_argument("clips", nargs="+", help="video files, in the order they were recorded")
    parser.add_argument("--question", default="Give a description of this scene.")
    arguments = parser.parse_args()

    with Headstart(arguments.target, vllm={"enforce_eager": True}) as headstart:
        camera = headstart.session("front camera")
        for clip in arguments.clips:
            answer = camera.ask(clip, arguments.question)
            print(f"{answer.num_passes} passes for {len(answer.token_ids)} tokens: {answer.text}")

        async def show_previews() -> None:
            async for event in camera.stream(arguments.clips[-1], arguments.question):
                match event:
                    case Preview(text, source):
                        print(f"drafted by {source}: {text!r}")
                    case Confirmed(text):
                        print(f"the target's words: {text!r}")
                    case Retracted(text):
                        print(f"taken back: {text!r}")
                    case Answer():
                        print(f"{event.num_accepted_tokens} of {len(event.token_ids)} were drafted")

        asyncio.run(show_previews())


if __name__ == "__main__":  # vLLM's processes import this file, and must not run it
    main()
