"""A run from its start to its end: asked once, or talked with, and told of.

The trace of a run begins and ends here, however the run ends.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import msgspec
import trio

from gambit_actors.actors.actor import DeckActor
from gambit_actors.actors.failing import CallersOwn, error_of
from gambit_actors.actors.mailboxes import Turn, ask_once
from gambit_actors.actors.sessions import RunResult, Session, result_of
from gambit_actors.actors.trees import RunTree
from gambit_actors.errors import RunFailed
from gambit_actors.openresponses.base import JSONValue
from gambit_actors.run.entries import TurnEnded
from gambit_actors.run.programs import Program
from gambit_actors.trace import events


class BegunRun(msgspec.Struct, frozen=True, eq=False):
    """A run that is about to start, or to go on.

    Attributes:
        actor: the root's.
        began: when, as the trace has it.
        is_resumed: whether it goes on where another process had left it.
        notices: what is to be told about that when it starts.
    """

    actor: DeckActor
    program: Program
    tree: RunTree
    run_id: str
    began: float
    is_resumed: bool = False
    notices: tuple[str, ...] = ()

    async def ask(self, turn: Turn) -> RunResult:
        """Have it come to one answer."""
        self._tell_start(turn.context, turn.message)
        ended: TurnEnded | None = None
        status: events.EndStatus = "cancelled"
        try:
            ended = await ask_once(self.actor, turn, hook=self.tree.hook)
            status = ended.status
        except Exception:
            status = "failed"  # A mistake of ours, or of a plugin.
            raise
        finally:
            self._tell_end(ended, status)
        return result_of(self.actor, self.tree, ended)

    @asynccontextmanager
    async def converse(self) -> AsyncIterator[Session]:
        """Have a conversation, until the block is left."""
        mailbox, inbox = trio.open_memory_channel[Turn](1)
        outbox, answers = trio.open_memory_channel[TurnEnded](1)
        session = Session(
            self.actor, self.program, self.tree, mailbox=mailbox, answers=answers
        )
        with CallersOwn() as own, self._told(session):
            async with trio.open_nursery() as nursery:
                self.tree.hook.start(nursery)
                nursery.start_soon(self.actor.run, inbox, outbox)
                try:
                    with own.kept():
                        if self.actor.opened is not None:
                            await self.actor.opened.wait()
                            session.last = self.actor.state.ended
                        yield session
                finally:
                    session.end()
                    # The stop signal: who listens ends when there is nobody to hear.
                    mailbox.close()
                    if session.is_busy:
                        nursery.cancel_scope.cancel()

    @contextmanager
    def _told(self, session: Session) -> Iterator[None]:
        self._tell_start()
        status: events.EndStatus = "cancelled"
        try:
            yield
            status = session.last.status if session.last else "cancelled"
        except Exception:
            status = "failed"
            raise
        finally:
            self._tell_end(session.last, status)

    def _tell_start(
        self, context: JSONValue = msgspec.UNSET, message: str | None = None
    ) -> None:
        tracer = self.tree.tracer
        if tracer.is_on:
            tracer.emit(
                events.RunStart(
                    run_id=self.run_id,
                    time=self.began,
                    deck_path=self.program.name,
                    input=None if context is msgspec.UNSET else context,
                    initial_user_message=message,
                    permissions=self.program.told_permissions,
                    is_resumed=self.is_resumed,
                )
            )
        for words in self.notices:
            self._tell_notice(words)

    def _tell_notice(self, words: str) -> None:
        tracer = self.tree.tracer
        if tracer.is_on:
            tracer.emit(
                events.Log(
                    run_id=self.run_id,
                    time=tracer.stamp(),
                    deck_path=self.program.name,
                    level="warning",
                    title="resume",
                    message=words,
                )
            )

    def _tell_end(self, last: TurnEnded | None, status: events.EndStatus) -> None:
        tracer, spent = self.tree.tracer, self.tree.account.spent
        if not tracer.is_on:
            return
        now = tracer.stamp()
        tracer.emit(
            events.RunEnd(
                run_id=self.run_id,
                time=now,
                deck_path=self.program.name,
                status=status,
                error=error_of(last) if last else None,
                duration=now - self.began,
                passes=spent.passes,
                calls=spent.calls,
                decks=spent.decks,
                usage=spent.as_usage(),
                cost=spent.known_cost,
                models=tuple(spent.models),
            )
        )


def worked(result: RunResult) -> RunResult:
    """A result that has an answer.

    Raises:
        RunFailed: it has none.
    """
    if result.failure is not None:
        raise RunFailed(result.failure.code, result.failure.message, result)
    return result
