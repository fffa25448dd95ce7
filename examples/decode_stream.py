"""Decode a recorded stream and act on it: print text as it comes, list the calls.

Run it:  .venv/bin/python examples/decode_stream.py gambit_actors/cli/demo.sse
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from gambit_actors.errors import StreamTruncated
from gambit_actors.openresponses import (
    Event,
    FunctionCall,
    ResponseBuilder,
    SSEDecoder,
    decode_event,
)
from gambit_actors.openresponses.events import MalformedEvent, OutputTextDelta


def read_events(path: Path) -> Iterator[Event]:
    """The events of a recording, up to its [DONE]."""
    decoder = SSEDecoder()
    with path.open("rb") as stream:
        while chunk := stream.read(4096):
            for frame in decoder.feed(chunk):
                if frame.is_done:
                    return
                yield decode_event(frame.data)


def main(path: Path) -> int:
    """Decode one file; exit with 1 unless the response was completed."""
    builder = ResponseBuilder()
    for event in read_events(path):
        builder.feed(event)
        match event:
            case OutputTextDelta(delta=text):
                print(text, end="", flush=True)
            case MalformedEvent(problem=problem):
                print(f"\n[skipped an event: {problem}]", file=sys.stderr)
            case _:
                pass  # Anything else is in the response in the end.
    print()
    try:
        response = builder.close()
    except StreamTruncated as problem:
        print(problem, file=sys.stderr)
        response = builder.partial()
    for item in response.output:
        if isinstance(item, FunctionCall) and item.status == "completed":
            print(f"wants {item.name} with {item.arguments}")
    print(f"status: {response.status}")
    return 0 if response.status == "completed" else 1


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit("usage: decode_stream.py FILE.sse")
    sys.exit(main(Path(sys.argv[1])))
