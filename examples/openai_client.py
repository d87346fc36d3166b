"""Ask headstart's server with the openai package, as any server of OpenAI's interface.

    headstart lab drive demo
    headstart serve --target demo/target --vllm enforce_eager=true --open
    python examples/openai_client.py http://127.0.0.1:8000 demo/second-0.mp4

What is headstart's own goes into `extra_body`: the name of the camera's stream, and the wish for
previews. A preview is what the whole answer is expected to be; it may be wrong, the content is not.
"""

import argparse
import base64
from pathlib import Path

from openai import OpenAI


def main() -> None:
    """Ask twice on one stream: the first answer drafts the second."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", help="address of a running `headstart serve`")
    parser.add_argument("clip", type=Path, help="a video file")
    parser.add_argument("--key", default="none", help="of a tenant; an open server takes any")
    parser.add_argument("--question", default="Give a description of this scene.")
    arguments = parser.parse_args()

    client = OpenAI(base_url=f"{arguments.server}/v1", api_key=arguments.key)
    model = client.models.list().data[0].id
    video = base64.b64encode(arguments.clip.read_bytes()).decode()
    content = [
        {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{video}"}},
        {"type": "text", "text": arguments.question},
    ]
    for _ in range(2):
        chunks = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": content}],
            max_tokens=64,
            temperature=0,
            stream=True,
            extra_body={"headstart": {"stream": "front camera", "preview": True}},
        )
        for chunk in chunks:
            told = getattr(chunk, "headstart", None) or {}
            if "preview" in told:
                print(f"\n[{told['source']} expects: {told['preview']!r}]")
            if chunk.choices and chunk.choices[0].delta.content:
                print(chunk.choices[0].delta.content, end="", flush=True)
            if "passes" in told:
                print(f"\n{told['passes']} passes")


if __name__ == "__main__":
    main()
