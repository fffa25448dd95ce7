"""What a file declares, imports and exports; and which files that leads to.

A module is only a table of names until something asks for one, so files may import
each other as long as no single definition needs itself.
"""

import posixpath
import re
from collections.abc import Callable

from tree_sitter import Node

from gambit_actors.schema.zod.functions import declare, make_function
from gambit_actors.schema.zod.model import BAD, Namespace, Value, ZodPath
from gambit_actors.schema.zod.scopes import Binding, Scope
from gambit_actors.schema.zod.session import (
    MAX_BRACKETS,
    MAX_FILES,
    MAX_TEXT_CHARACTERS,
    Session,
    Spot,
)
from gambit_actors.schema.zod.syntax import (
    Source,
    field,
    has_token,
    parts_of,
    shown,
    string_value,
    text_of,
)
from gambit_actors.schema.zod.values import Evaluator

# Among others zod, npm:zod@3, zod/v4, jsr:@zod/zod and a mod.ts on a server.
_ZOD = re.compile(r"(^|[/:])zod(@[^/]*)?(/v[34])?(/mod\.ts|/index\.[a-z]+)?$")
_TYPES_ONLY = {
    "ambient_declaration",
    "comment",
    "empty_statement",
    "hash_bang_line",
    "interface_declaration",
    "type_alias_declaration",
}

_BRACKETS = re.compile(r"[\[\](){}]")
# A string with a name or another string right behind it, which no code has. Many of
# them take the parser time that grows with their square.
_STUCK = re.compile(
    r"""//[^\n]*|/\*(?:.*?\*/|.*)
    |(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')(?P<stuck>[\w"'`$])?""",
    re.DOTALL | re.VERBOSE,
)
_MANY_STUCK = 200


class Module:
    """One file: its names, and the names others see."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scope = Scope(source)
        self.exports: dict[str, Binding] = {}
        self.default_node: Node = source.root
        self.stars: list[tuple[str, Node]] = []


class Modules:
    """All files of one reading, each parsed once."""

    def __init__(
        self, session: Session, read_file: Callable[[str], str | None]
    ) -> None:
        self._session = session
        self._read_file = read_file
        self._evaluator = Evaluator(session)
        self._modules: dict[str, Module | None] = {}
        self._characters = 0

    def load(self, file: str, text: str) -> Module | None:
        """Parse a file and note what it declares; None if it is not TypeScript."""
        self._characters += len(text)
        refused = self._too_large(text)
        if refused is not None:
            source = Source(file, "")
            self._session.error(*refused, Spot(source, source.root))
            return None
        source = Source(file, text)
        problems = source.syntax_errors()
        for node, problem in problems:
            message = f"This is not valid TypeScript: {problem}."
            self._session.error("GS001", message, Spot(source, node))
        if problems:
            return None
        module = Module(source)
        self._modules[file] = module
        for statement in parts_of(source.root):
            self._take(module, statement)
        return module

    def _too_large(self, text: str) -> tuple[str, str] | None:
        """The code and the words for a text that is not even parsed."""
        if self._characters > MAX_TEXT_CHARACTERS:
            limit = f"{MAX_TEXT_CHARACTERS:,}"
            words = f"The file and what it imports are longer than {limit} characters."
            return "GS013", words
        depth = deepest = 0
        for bracket in _BRACKETS.finditer(text):
            depth = max(0, depth + (1 if bracket[0] in "([{" else -1))
            deepest = max(deepest, depth)
        if deepest > MAX_BRACKETS:
            words = f"Brackets are more than {MAX_BRACKETS} deep here; flatten it."
            return "GS012", words
        stuck = sum(match["stuck"] is not None for match in _STUCK.finditer(text))
        if stuck > _MANY_STUCK:
            return "GS001", "This is not valid TypeScript: names stand behind strings."
        return None

    def find_export(self, module: Module, name: str, spot: Spot) -> Value:
        """The value a module exports under a name, as seen from a place."""
        return self._find(module, name, spot, frozenset())

    def _find(
        self, module: Module, name: str, spot: Spot, seen: frozenset[str]
    ) -> Value:
        binding = self._lookup(module, name, seen)
        if binding is not None:
            return binding.value(self._session, spot)
        known = ", ".join(list(module.exports)[:10])
        message = (
            f"{module.source.file} exports no {name!r}; export it, or correct the name."
        )
        hint = f"It exports: {known}." if known else None
        self._session.error("GS010", message, spot, hint=hint)
        return BAD

    def _lookup(
        self, module: Module, name: str, seen: frozenset[str]
    ) -> Binding | None:
        """An export, own or passed on by ``export *``."""
        if name in module.exports:
            return module.exports[name]
        if module.source.file in seen or name == "default":
            return None
        seen |= {module.source.file}
        for specifier, node in module.stars:
            if _is_zod(specifier):
                path = () if name == "z" else (name,)
                return Binding(name, lambda path=path: ZodPath(path))  # type: ignore[misc]
            other = self._module(module, specifier, node)
            found = self._lookup(other, name, seen) if other is not None else None
            if found is not None:
                return found
        return None

    def _take(self, module: Module, statement: Node) -> None:
        """Note what one statement of a file declares."""
        if statement.type in _TYPES_ONLY:
            return
        if statement.type == "import_statement":
            self._take_import(module, statement)
        elif statement.type == "export_statement":
            self._take_export(module, statement)
        elif not self._declare(module, statement):
            self._note_unrun(module, statement)

    def _declare(self, module: Module, statement: Node) -> list[str]:
        """Declare what a statement declares; the names, empty if it does nothing."""
        scope = module.scope
        before = set(scope.names)
        if statement.type in {"lexical_declaration", "variable_declaration"}:
            is_constant = has_token(statement, "const")
            for declarator in parts_of(statement):
                declare(self._evaluator, declarator, scope, is_constant=is_constant)
            return [name for name in scope.names if name not in before]
        name_node = field(statement, "name")
        if name_node is None or not statement.type.endswith("_declaration"):
            return []
        name = text_of(name_node)
        scope.names[name] = Binding(name, lambda: self._declared(statement, scope))
        return [name]

    def _declared(self, statement: Node, scope: Scope) -> Value:
        """The value of a function or enum; classes and the like have none."""
        if statement.type == "function_declaration":
            return make_function(self._evaluator, statement, scope)
        if statement.type == "enum_declaration":
            return self._enum(statement, scope)
        return self._evaluator.refuse_construct(statement, scope)

    def _enum(self, statement: Node, scope: Scope) -> Value:
        members: dict[str, Value] = {}
        following: Value = 0
        body = field(statement, "body")
        for part in parts_of(body) if body is not None else []:
            name, value = field(part, "name") or part, field(part, "value")
            key = string_value(name) if name.type == "string" else text_of(name)
            if value is not None:
                following = self._evaluator.evaluate(value, scope)
            elif following is None:
                # Only numbers have a next one; TypeScript wants a value here too.
                self._evaluator.refuse_construct(part, scope)
            last = members[key] = following
            following = last + 1 if isinstance(last, int | float) else None
        return members

    def _note_unrun(self, module: Module, statement: Node) -> None:
        spot = Spot(module.source, statement)
        what = shown(text_of(statement))
        inner = parts_of(statement)
        if inner and inner[0].type.endswith("assignment_expression"):
            message = f"The assignment {what} cannot be read; use const definitions."
            self._session.error("GS004", message, spot)
        else:
            message = f"The statement {what} is not run; a schema file needs none."
            self._session.warn("GS026", message, spot)

    def _take_import(self, module: Module, statement: Node) -> None:
        source = field(statement, "source")
        clause = next(
            (p for p in parts_of(statement) if p.type == "import_clause"), None
        )
        if source is None or clause is None or has_token(statement, "type"):
            return
        specifier = string_value(source)
        for part in parts_of(clause):
            if part.type == "identifier":
                self._bind_import(module, part, "default", specifier, source)
            elif part.type == "namespace_import":
                self._bind_import(module, parts_of(part)[0], "*", specifier, source)
            else:
                for item in parts_of(part):
                    name, alias = field(item, "name"), field(item, "alias")
                    if name is not None and not has_token(item, "type"):
                        self._bind_import(
                            module, alias or name, _name(name), specifier, source
                        )

    def _bind_import(
        self, module: Module, local: Node, name: str, specifier: str, source: Node
    ) -> None:
        binding = self._imported(module, name, specifier, local, source)
        module.scope.names[text_of(local)] = binding

    def _imported(
        self, module: Module, name: str, specifier: str, local: Node, source: Node
    ) -> Binding:
        def compute() -> Value:
            if _is_zod(specifier):
                return ZodPath(() if name in {"z", "default", "*"} else (name,))
            other = self._module(module, specifier, source)
            if other is None:
                return BAD
            if name == "*":
                return Namespace(
                    lambda wanted, node: self.find_export(
                        other, wanted, Spot(module.source, node)
                    )
                )
            return self.find_export(other, name, Spot(module.source, local))

        circle = f"The import of {name!r} from {specifier!r}"
        return Binding(circle, compute)

    def _take_export(self, module: Module, statement: Node) -> None:
        source = field(statement, "source")
        if has_token(statement, "type"):
            return
        if source is not None:
            self._take_reexport(module, statement, source)
            return
        declaration, value = field(statement, "declaration"), field(statement, "value")
        if has_token(statement, "default"):
            module.default_node = statement
            self._take_default(module, value or declaration)
        elif declaration is not None:
            if declaration.type not in _TYPES_ONLY:
                for name in self._declare(module, declaration):
                    module.exports[name] = module.scope.names[name]
        else:
            for item in _specifiers(statement):
                self._export_local(module, item)

    def _take_default(self, module: Module, node: Node | None) -> None:
        if node is None or node.type in _TYPES_ONLY:
            return
        name = field(node, "name") if node.type.endswith("_declaration") else None
        if name is not None:
            self._declare(module, node)
            module.exports["default"] = module.scope.names[text_of(name)]
        else:
            module.exports["default"] = Binding(
                "default", lambda: self._evaluator.evaluate(node, module.scope)
            )

    def _export_local(self, module: Module, item: Node) -> None:
        name, alias = field(item, "name"), field(item, "alias")
        if name is None or has_token(item, "type"):
            return
        exported = _name(alias or name)
        module.exports[exported] = Binding(
            exported, lambda: self._evaluator.name(name, module.scope)
        )

    def _take_reexport(self, module: Module, statement: Node, source: Node) -> None:
        specifier = string_value(source)
        if has_token(statement, "*"):
            module.stars.append((specifier, source))
            return
        for part in parts_of(statement):
            if part.type == "namespace_export":
                local = parts_of(part)[0]
                module.exports[_name(local)] = self._imported(
                    module, "*", specifier, local, source
                )
        for item in _specifiers(statement):
            name, alias = field(item, "name"), field(item, "alias")
            if name is not None and not has_token(item, "type"):
                module.exports[_name(alias or name)] = self._imported(
                    module, _name(name), specifier, name, source
                )

    def _module(self, importer: Module, specifier: str, node: Node) -> Module | None:
        """The file a specifier leads to; None, and a finding, if there is none."""
        spot = Spot(importer.source, node)
        if not specifier.startswith(("./", "../", "/")):
            message = (
                f"The package {specifier!r} cannot be read; only zod and files given"
                " by a relative path can be imported."
            )
            self._session.error("GS009", message, spot)
            return None
        folder = posixpath.dirname(importer.source.file)
        path = posixpath.normpath(posixpath.join(folder, specifier))
        for candidate in _candidates(path):
            if candidate in self._modules:
                return self._modules[candidate]
            if len(self._modules) >= MAX_FILES:
                message = f"More than {MAX_FILES} files are imported; use fewer."
                self._session.error("GS013", message, spot)
                return None
            text = self._read_file(candidate)
            if text is not None:
                self._modules[candidate] = None
                return self.load(candidate, text)
        message = f"The file {path!r} is not there; correct the import."
        self._session.error("GS009", message, spot)
        return None


def _specifiers(statement: Node) -> list[Node]:
    clauses = (part for part in parts_of(statement) if part.type == "export_clause")
    return [item for clause in clauses for item in parts_of(clause)]


def _name(node: Node) -> str:
    return string_value(node) if node.type == "string" else text_of(node)


def _is_zod(specifier: str) -> bool:
    is_file = specifier.startswith((".", "/"))
    return not is_file and _ZOD.search(specifier) is not None


def _candidates(path: str) -> list[str]:
    """The files a path may mean, as TypeScript looks for them."""
    found = [path]
    if path.endswith((".js", ".mjs")):
        found.append(path.rsplit(".", 1)[0] + ".ts")
    elif not path.endswith(".ts"):
        found += [f"{path}.ts", f"{path}/index.ts"]
    return found
