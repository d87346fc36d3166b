"""Ask two questions about one clip, and see where the time went.

    headstart lab drive demo
    python examples/ask.py demo/target demo/second-0.mp4

The second question finds the clip's frames in vLLM's prefix cache and computes only its own text.
"""

import argparse

from headstart import Headstart


def main() -> None:
    """Ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", help="a Video-LLaVA: a directory, or a name on the hub")
    parser.add_argument("clip", help="a video file")
    arguments = parser.parse_args()

    with Headstart(arguments.target, vllm={"enforce_eager": True}) as headstart:
        answer = headstart.ask(arguments.clip, "Give a description of this scene.")
        print(answer.text)
        for span in answer.timeline.spans:
            print(f"{span.stage:<12}{(span.end_s - span.start_s) * 1e3:8.1f} ms")

        answer = headstart.ask(arguments.clip, "Is it safe to go on?")
        print(answer.text)
        print(f"{answer.num_cached_tokens} of {answer.num_prompt_tokens} prompt tokens were cached")


if __name__ == "__main__":  # vLLM's processes import this file, and must not run it
    main()
