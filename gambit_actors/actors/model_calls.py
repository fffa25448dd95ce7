"""Asking models: one after the other until one answers, within what may be spent.

What a model had said when it was cut is not lost: the pieces are put together when
there is no answer, and only then, so that an answer costs nothing extra.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec
import trio

from gambit_actors.actors.telling import Teller
from gambit_actors.actors.trees import Live, RunTree
from gambit_actors.errors import GambitBug, ProviderError
from gambit_actors.openresponses.builder import ResponseBuilder
from gambit_actors.openresponses.codec import decode_response
from gambit_actors.openresponses.events import Event
from gambit_actors.openresponses.items import Message
from gambit_actors.openresponses.requests import CreateResponse
from gambit_actors.openresponses.responses import Response
from gambit_actors.openresponses.writing import encode
from gambit_actors.run.budgets import Account, Price, Reserved, wanted_by
from gambit_actors.run.entries import Failure, ModelLost
from gambit_actors.run.model_params import with_params_under
from gambit_actors.run.ports import NO_SETTINGS, ModelContext, Notice
from gambit_actors.run.programs import Program
from gambit_actors.run.secrets import without_secrets
from gambit_actors.run.states import RunState
from gambit_actors.trace import events

Touch: TypeAlias = Callable[[], None]


class Answered(msgspec.Struct, frozen=True):
    """A model gave an answer, which may say that it failed."""

    model: str
    response: Response


class ModelCalls:
    """Asks the models of one deck, for one actor.

    Args:
        tree: what the actor shares with others.
        program: the deck.
        live: the actor's entry in the list of those alive; says which model it asks.
        teller: what tells of it.

    Attributes:
        lost: the calls that did not say what they used and are not in the log yet.
    """

    __slots__ = (
        "_live",
        "_pieces",
        "_place",
        "_program",
        "_teller",
        "_told",
        "_tree",
        "_untold",
        "lost",
    )

    def __init__(
        self, tree: RunTree, program: Program, live: Live, teller: Teller
    ) -> None:
        self._tree = tree
        self._program = program
        self._live = live
        self._teller = teller
        self._told = 0
        self._place = 1  # Of the model that is asked among those there are.
        # Empty lists are made when there is something to put into them.
        self._pieces: list[Event] | None = None
        self.lost: tuple[ModelLost, ...] = ()
        # A call whose answer is not in the log yet: its span, its model, its pass.
        self._untold: tuple[str, str, int] | None = None

    async def ask(
        self,
        request: CreateResponse,
        state: RunState,
        account: Account,
        touch: Touch | None,
    ) -> Answered | Failure:
        """Ask the deck's models in their order, until one has an answer.

        Who gets an answer writes it down, and then calls `tell`.

        Args:
            request: what to ask, without the model.
            state: the run so far.
            account: what the invocation may spend.
            touch: told when there is a sign of life.
        """
        tree, named = self._tree, self._program.deck.model_params.models
        names = tree.forced_models or named or tree.default_models
        if not names:
            await trio.lowlevel.checkpoint()
            message = (
                f"{self._teller.deck} names no model: set model under [modelParams], "
                "or say which one to ask where decks name none"
            )
            return Failure(code="no_model", message=message)
        candidates = self._tree.candidates.of(names)
        for index, candidate in enumerate(candidates):
            model = self._live.doing = candidate.model
            self._place = index + 1
            asked = request
            if candidate.params is not NO_SETTINGS:
                asked = with_params_under(request, candidate.params)
            found = await self._ask_one(asked, model, state, account, touch)
            if isinstance(found, Failure):
                return found  # Nothing that another model could help with.
            is_last = index + 1 == len(candidates)
            if isinstance(found, Response):
                if is_last or found.status != "failed":
                    return Answered(model, found)
                self.tell(None)
            if not is_last:
                self._pieces = None
                following = candidates[index + 1].model
                self._teller.failover(model, following, _told(found))
        return Failure(code="model_unavailable", message=str(found))  # noqa: ASYNC910  # there was one to ask

    def tell(
        self, logged: Response | None, problem: ProviderError | None = None
    ) -> None:
        """Tell of the last call, once.

        Args:
            logged: the answer, if it is in the log; None if it came to nothing.
            problem: what went wrong, if something did.
        """
        untold, self._untold = self._untold, None
        if untold is not None:
            span, model, pass_number = untold
            self._teller.model_result(
                span,
                model,
                pass_number=pass_number,
                response=logged,
                error=None if problem is None else _told(problem),
            )

    def unfinished(self) -> tuple[Message, ...]:
        """What a model had said when it was cut, if one was.

        Only words: a call that is half written is not one, and reasoning without its
        end cannot be sent back.
        """
        builder = ResponseBuilder()
        for piece in self._pieces or ():
            builder.feed(piece)
        said = builder.partial()
        if secrets := self._tree.secrets:
            said = decode_response(without_secrets(encode(said), secrets))
        return tuple(
            msgspec.structs.replace(item, status="incomplete")
            for item in said.output
            if isinstance(item, Message) and item.text
        )

    def forget_unfinished(self) -> None:
        """What a model had said, and what was lost, is in the log now."""
        self._pieces = None
        self.lost = ()

    async def _ask_one(
        self,
        request: CreateResponse,
        model: str,
        state: RunState,
        account: Account,
        touch: Touch | None,
    ) -> Response | Failure | ProviderError:
        request = msgspec.structs.replace(request, model=model)
        price = self._tree.prices.get(model)
        reserved: Reserved | None = None
        if account.is_limited:
            room = await self._reserve(request, model, account, price)
            if isinstance(room, Failure):
                return room
            reserved = room
            request = msgspec.structs.replace(
                request, max_output_tokens=reserved.output_tokens
            )
        found: Response | ProviderError | None = None
        try:
            found = await self._call(request, model, state, touch)
            if isinstance(found, Response):
                # Before anything is given back: nobody may see it as not spent.
                account.count_answer(model, found.usage, price)
                if found.usage is None and reserved is not None:
                    self._note(_unsaid(reserved))
        finally:
            if self._is_unknown(found):
                account.count_lost(reserved)
                self.lost += (_lost(model, reserved),)
            if reserved is not None:
                account.give_back(reserved)
                self._tree.tell_of_room()
        return found

    def _is_unknown(self, found: Response | ProviderError | None) -> bool:
        """Whether nobody knows what a call has used: it broke off, or did not say."""
        if isinstance(found, Response):
            return found.usage is None
        # One that failed before it said anything has used nothing.
        return found is None or bool(self._pieces)

    async def _reserve(
        self,
        request: CreateResponse,
        model: str,
        account: Account,
        price: Price | None,
    ) -> Reserved | Failure:
        """Set aside what the call may use; wait if others may give something back."""
        wanted = wanted_by(request, model, price)
        while True:
            found = account.reserve(wanted)
            if isinstance(found, Reserved):
                return found  # noqa: ASYNC910  # a model is asked next
            if found.is_final:
                return Failure(code=found.code, message=found.message)  # noqa: ASYNC910
            await self._tree.wait_for_room()

    async def _call(
        self,
        request: CreateResponse,
        model: str,
        state: RunState,
        touch: Touch | None,
    ) -> Response | ProviderError:
        teller, pass_number = self._teller, state.passes + 1
        context = ModelContext(
            run_id=self._live.run_id,
            deck=teller.deck,
            turn=state.turns,
            pass_number=pass_number,
            note=self._note,
            conceal=self._tree.secrets.add,
        )
        span = f"{teller.span}:{state.turns}.{pass_number}"
        if self._place > 1:
            span = f"{span}.{self._place}"
        sent = state.sent
        teller.model_call(
            span,
            model,
            pass_number=pass_number,
            items=sent,
            new=len(sent) - self._told,
        )
        self._told = len(sent)
        self._untold = (span, model, pass_number)
        try:
            response = await self._tree.provider.responses(
                request, context, self._on_event(span, model, touch)
            )
        except ProviderError as raised:
            self.tell(None, raised)
            return raised  # noqa: ASYNC910  # a provider has waited
        except BaseException:
            self.tell(None)
            raise
        if not isinstance(response, Response):
            self.tell(None)  # type: ignore[unreachable]  # a provider may break its word
            kind = type(response).__name__
            msg = f"the provider of {model} returned {kind} and not a Response"
            raise GambitBug(msg)
        if response.status != "failed":
            self._pieces = None
        return response  # noqa: ASYNC910

    def _note(self, notice: Notice) -> None:
        """Tell of something that happened on the way to the answer waited for."""
        if self._untold is not None:
            span, model, _ = self._untold
            self._teller.notice(span, model, notice)

    def _on_event(
        self, span: str, model: str, touch: Touch | None
    ) -> Callable[[Event], None]:
        """What takes the pieces of an answer: kept, told, and a sign of life."""
        if touch is None and not self._teller.tracer.is_on:
            return self.keep
        return _Listener(self, self._teller, span, model, touch)

    def keep(self, piece: Event) -> None:
        """Keep a piece of an answer, as long as the whole is not there."""
        if self._pieces is None:
            self._pieces = [piece]
        else:
            self._pieces.append(piece)


class _Listener:
    """Takes the pieces of one answer.

    A class and no closure: one object where there would be sixteen, for each model
    that is being waited for.
    """

    __slots__ = ("_calls", "_model", "_span", "_teller", "_touch")

    def __init__(
        self,
        calls: ModelCalls,
        teller: Teller,
        span: str,
        model: str,
        touch: Touch | None,
    ) -> None:
        self._calls = calls
        self._teller = teller
        self._span = span
        self._model = model
        self._touch = touch

    def __call__(self, event: Event) -> None:
        self._calls.keep(event)
        self._teller.stream_event(self._span, self._model, event)
        if self._touch is not None:
            self._touch()


def _unsaid(reserved: Reserved) -> Notice:
    message = (
        "the server did not say how many tokens it used; "
        f"{reserved.tokens} count as used, all that were set aside for its answer"
    )
    return Notice(kind="odd", message=message)


def _lost(model: str, reserved: Reserved | None) -> ModelLost:
    if reserved is None:
        return ModelLost(model=model)
    return ModelLost(model=model, tokens=reserved.tokens, cost=reserved.cost)


def _told(problem: ProviderError | Response) -> events.TraceError:
    if isinstance(problem, ProviderError):
        return events.TraceError(code="provider_error", message=str(problem))
    words = problem.error.message if problem.error else "no reason given"
    return events.TraceError(code="model_failed", message=words)
