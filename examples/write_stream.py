"""Answer as an Open Responses server would: a request in, a stream of bytes out.

The model is a function here. Put it behind any HTTP server; the bytes are the body.

Run it, and read it:

    echo '{"model": "echo", "input": "hello"}' |
      .venv/bin/python examples/write_stream.py | .venv/bin/gambit demo -
"""

import sys
import time
from collections.abc import Iterator

from gambit_actors.errors import BadRequest
from gambit_actors.openresponses import (
    DONE_FRAME,
    CreateResponse,
    Message,
    ResponseWriter,
    Usage,
    decode_request,
    encode_event,
    response_for,
)


def answer(request: CreateResponse) -> Iterator[str]:
    """Say it back, a word at a time."""
    if isinstance(request.input, str):
        text = request.input
    else:
        messages = [m for m in request.input or () if isinstance(m, Message)]
        text = messages[-1].text if messages else "nothing"
    for word in f"You said: {text}".split(" "):
        yield f"{word} "


def stream(request: CreateResponse) -> Iterator[bytes]:
    """The whole body of the answer."""
    now = int(time.time())
    writer = ResponseWriter(response_for(request, id="resp_1", created_at=now))
    events = writer.start() + writer.start_text("text")
    words = 0
    for word in answer(request):
        events += writer.add("text", word)
        words += 1
        # One write for all that is ready, not one per event.
        yield b"".join(encode_event(event) for event in events)
        events = []
    usage = Usage(input_tokens=words, output_tokens=words, total_tokens=2 * words)
    events = writer.stop("text")
    events += writer.finish("end_turn", usage=usage, completed_at=int(time.time()))
    yield b"".join(encode_event(event) for event in events) + DONE_FRAME


def main() -> int:
    """Read a request from standard input, write its stream to standard output."""
    try:
        request = decode_request(sys.stdin.buffer.read())
    except BadRequest as problem:
        print(f"the request cannot be used: {problem}", file=sys.stderr)
        return 2
    for chunk in stream(request):
        sys.stdout.buffer.write(chunk)
    return 0


if __name__ == "__main__":
    sys.exit(main())
