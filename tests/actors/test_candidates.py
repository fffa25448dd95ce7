"""Names of models: what they stand for, and what is told on the way to an answer."""

from collections.abc import Callable, Sequence

import pytest
import trio

from gambit_actors.actors.candidates import Candidates
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.providers.scripted import ScriptedProvider
from gambit_actors.providers.scripts import Reply
from gambit_actors.run.ports import Candidate, ModelContext, Notice
from gambit_actors.trace.events import ModelFailover, ModelNotice
from tests.actors.playing import MODEL, stage
from tests.deck.reading import deck_text


class Directory(ScriptedProvider):
    """A scripted provider that knows one model by another name, and talks a lot."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__(replies)
        self.asked: list[CreateResponse] = []

    def candidates(self, model: str) -> Sequence[Candidate]:
        """``fast`` is two models, the first of them cool."""
        if model != "fast":
            return [Candidate(model=model)]
        cool = CreateResponse(temperature=0.1, top_p=0.2)
        return [
            Candidate(model="scripted/a", params=cool),
            Candidate(model="scripted/b"),
        ]

    async def responses(
        self,
        request: CreateResponse,
        context: ModelContext,
        on_event: Callable[[Event], None],
    ) -> Response:
        """Answer, and say that something was odd."""
        self.asked.append(request)
        context.note(Notice(kind="odd", message="an odd thing", seconds=0.5))
        return await super().responses(request, context, on_event)


def test_names_are_looked_up_once() -> None:
    """A list of names is looked up the first time it is asked for."""
    directory = Directory([])
    candidates = Candidates(directory)

    first = candidates.of(("fast",))

    assert [c.model for c in first] == ["scripted/a", "scripted/b"]
    assert candidates.of(("fast",)) is first


def test_no_model_is_asked_twice() -> None:
    """A model that stands behind two names is asked once, where it is first."""
    found = Candidates(Directory([])).of(("scripted/b", "fast", "scripted/a"))

    assert [c.model for c in found] == ["scripted/b", "scripted/a"]


def test_a_provider_that_is_no_directory_takes_names_as_they_are() -> None:
    """Without aliases a name is the model's own."""
    found = Candidates(ScriptedProvider([])).of(("fast",))

    assert found == (Candidate(model="fast"),)


@pytest.mark.spec("DK-32")
async def test_an_alias_fails_over_and_brings_its_settings() -> None:
    """Behind a name stand models in order, each with settings under the deck's own."""
    text = deck_text('[modelParams]\nmodel = "fast"\ntemperature = 0.9')
    provider = Directory([Reply(fault="error"), Reply(text="From b.")])
    async with stage({"PROMPT.md": text}, provider) as on:
        result = await on.runtime.run("PROMPT.md", message="Hi.")
        (hop,) = on.sink.of(ModelFailover)

    assert result.text == "From b."
    assert (hop.model, hop.next_model) == ("scripted/a", "scripted/b")
    asked = [(r.model, r.temperature, r.top_p) for r in provider.asked]
    assert asked == [("scripted/a", 0.9, 0.2), ("scripted/b", 0.9, None)]


async def test_what_a_provider_notes_is_traced_where_it_belongs() -> None:
    """A notice is told inside the call of the model that it is about."""
    provider = Directory([Reply(text="Hello.")])
    async with stage({"PROMPT.md": deck_text(MODEL)}, provider) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        (notice,) = on.sink.of(ModelNotice)
        call = next(e for e in on.sink.events if e.type == "model.call")

    assert notice.action_call_id == call.action_call_id
    assert (notice.kind, notice.message, notice.seconds) == ("odd", "an odd thing", 0.5)


async def test_a_notice_after_the_answer_is_told_to_nobody() -> None:
    """A provider that talks when its call is over disturbs no other call."""
    kept: list[Callable[[Notice], None]] = []

    class Late(Directory):
        async def responses(
            self,
            request: CreateResponse,
            context: ModelContext,
            on_event: Callable[[Event], None],
        ) -> Response:
            kept.append(context.note)
            return await ScriptedProvider.responses(self, request, context, on_event)

    async with stage({"PROMPT.md": deck_text(MODEL)}, Late([Reply(text="Hi.")])) as on:
        await on.runtime.run("PROMPT.md", message="Hi.")
        kept[0](Notice(kind="odd", message="too late"))
        await trio.lowlevel.checkpoint()
        assert on.sink.of(ModelNotice) == []
