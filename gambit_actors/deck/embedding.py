"""Put snippets in their places: a document becomes the prompt a model is sent.

A snippet is looked up from the file that embeds it, and may embed others. Its body
takes the place of the image, without the space around it. What its frontmatter
says is handed on: a snippet can bring actions, scenarios, graders and flags.
"""

import msgspec

from gambit_actors.deck.builtin import SNIPPET_SCHEME, SNIPPETS, closest_name
from gambit_actors.deck.documents import Document
from gambit_actors.deck.embeds import Image, embed_kind, path_from_target
from gambit_actors.deck.findings import Findings
from gambit_actors.deck.legacy import modern_snippet
from gambit_actors.deck.loading import Loading
from gambit_actors.schema.diagnostics import Edit
from gambit_actors.schema.schemas import joined

_MAX_DEPTH = 32
_MAX_PROMPT_CHARACTERS = 2_000_000
_MAX_EMBEDS = 10_000


class Embedded(msgspec.Struct, frozen=True):
    """A prompt, and the snippets it was made of, each once, in the order met."""

    prompt: str
    snippets: tuple[Document, ...]


class Embedder:
    """Embeds snippets into one deck.

    Args:
        loading: finds documents.
        findings: takes what is wrong.
    """

    def __init__(self, loading: Loading, findings: Findings) -> None:
        self._loading = loading
        self._findings = findings
        self._snippets: dict[str, Document] = {}
        self._characters = 0
        self._embeds = 0
        self._is_exhausted = False

    def embed(self, document: Document) -> Embedded:
        """Make the prompt of a deck."""
        prompt = self._expanded(document, (document.source.file,)).strip()
        return Embedded(prompt, tuple(self._snippets.values()))

    def _expanded(self, document: Document, chain: tuple[str, ...]) -> str:
        text = document.source.text
        pieces, at = [], document.body.start
        for image in document.images:
            if self._is_exhausted:
                break
            replacement = self._replacement(document, image, chain)
            if replacement is not None:
                pieces += [text[at : image.span.start], replacement]
                at = image.span.end
        return "".join([*pieces, text[at : document.body.end]])

    def _replacement(
        self, document: Document, image: Image, chain: tuple[str, ...]
    ) -> str | None:
        """What stands in the place of an image; None to leave it as it is."""
        kind = embed_kind(image.target)
        if kind is None:
            return None
        if self._goes_too_far(document, image, chain):
            return ""
        if not image.is_valid:
            self._note_space(document, image)
            return None
        if kind == "code":
            message = f"{image.target} is code; a snippet is a Markdown file."
            self._refuse("GD053", message, document, image)
            return ""
        return self._snippet_text(document, image, chain)

    def _note_space(self, document: Document, image: Image) -> None:
        span = image.target_span
        better = f"<{image.target}>"
        self._findings.add(
            document.source.finding(
                "GD058",
                "warning",
                f"This is not embedded: its target has a space; write {better}.",
                at=span.start,
                edits=(Edit(start=span.start, end=span.end, text=better),),
            )
        )

    def _snippet_text(
        self, document: Document, image: Image, chain: tuple[str, ...]
    ) -> str:
        file = self._target(document, image)
        if _is_for_people(file, chain[0]):
            message = f"{image.target} is for people and is not sent to a model."
            hint = "Put what the model must know into a snippet."
            self._refuse("GD057", message, document, image, hint=hint)
            return ""
        if file in chain:
            circle = " -> ".join([*chain[chain.index(file) :], file])
            message = f"Snippets embed each other in a circle: {circle}."
            self._refuse("GD051", message, document, image)
            return ""
        snippet = self._loading.document(file)
        if snippet is None:
            self._refuse_missing(file, document, image)
            return ""
        if file not in self._snippets:
            self._snippets[file] = snippet
            self._findings.extend(self._loading.problems(snippet))
        text = self._expanded(snippet, (*chain, file))
        self._characters += len(text)
        return text.strip()

    def _target(self, document: Document, image: Image) -> str:
        """The file or URI an image stands for, by the name it has today."""
        if embed_kind(image.target) == "file":
            return joined(document.source.file, path_from_target(image.target))
        uri, code = modern_snippet(image.target)
        if code is not None:
            message = f"{image.target} is an old name; write {uri}."
            span = image.target_span
            self._findings.add(
                document.source.finding(
                    code,
                    "warning",
                    message,
                    at=span.start,
                    edits=(Edit(start=span.start, end=span.end, text=uri),),
                )
            )
        return uri

    def _goes_too_far(
        self, document: Document, image: Image, chain: tuple[str, ...]
    ) -> bool:
        """Whether snippets multiply without end, as snippets in snippets can."""
        if self._is_exhausted:
            return True
        self._embeds += 1
        if len(chain) > _MAX_DEPTH:
            message = f"Snippets are embedded more than {_MAX_DEPTH} deep here."
        elif self._embeds > _MAX_EMBEDS:
            message = f"The prompt is made of more than {_MAX_EMBEDS:,} snippets."
        elif self._characters > _MAX_PROMPT_CHARACTERS:
            limit = f"{_MAX_PROMPT_CHARACTERS:,}"
            message = f"Snippets make the prompt larger than {limit} characters."
        else:
            return False
        self._is_exhausted = True
        self._refuse("GD055", message, document, image)
        return True

    def _refuse_missing(self, file: str, document: Document, image: Image) -> None:
        if not file.startswith("gambit://"):
            message = f"The embedded file {file} does not exist."
            self._refuse("GD050", message, document, image)
            return
        names = [SNIPPET_SCHEME + name for name in SNIPPETS]
        closest = closest_name(file, names)
        hint = None if closest is None else f"Did you mean {closest}?"
        message = f"There is no built-in snippet {file}."
        self._refuse("GD052", message, document, image, hint=hint)

    def _refuse(
        self,
        code: str,
        message: str,
        document: Document,
        image: Image,
        *,
        hint: str | None = None,
    ) -> None:
        at = image.target_span.start
        found = document.source.finding(code, "error", message, at=at, hint=hint)
        self._findings.add(found)


def _is_for_people(file: str, deck: str) -> bool:
    """Whether a file is the intent of a deck, or one of this deck's policies."""
    folder, _, name = file.rpartition("/")
    own, _, _ = deck.rpartition("/")
    policies = f"{own}/policy" if own else "policy"
    return name == "INTENT.md" or f"{folder}/".startswith(f"{policies}/")
