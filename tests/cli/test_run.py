"""``gambit run`` gives a deck's answer, says what it cost, and can be interrupted."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gambit_actors.actors.confined import confinement
from gambit_actors.actors.confined.rules import Platform
from gambit_actors.cli.amounts import cost_text
from gambit_actors.cli.main import main
from gambit_actors.trace.codec import decode_event
from gambit_actors.trace.events import RunEnd
from gambit_actors.trace.trees import unbalanced
from tests.actors.confined.trying import needs_landlock

GAMBIT = Path(sys.executable).with_name("gambit")
DECK = """+++
[modelParams]
model = "far/away"

[[tools]]
name = "crm"
description = "Leave a note."
+++

Be kind.
"""
HELLO = '[[replies]]\ntext = "Hello there."\n'
CALLING = """
[[replies]]
text = "One moment."
calls = [{ name = "crm", arguments = { note = "Hi." } }]
[[replies]]
text = "Done."
"""
SUPPORT = Path(__file__).resolve().parent.parent.parent / "decks" / "support"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a deck, a script, and nothing else; it is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "PROMPT.md").write_text(DECK)
    (tmp_path / "script.toml").write_text(HELLO)
    return tmp_path


def run(*arguments: str, **env: str) -> Result:
    """Run a deck in this process, with the script in the current folder."""
    settings = {"COLUMNS": "200", "NO_COLOR": "1"} | env
    command = ["run", ".", "--script", "script.toml", *arguments]
    return CliRunner(env=settings).invoke(main, command)


def test_the_answer_is_all_there_is_on_standard_output(desk: Path) -> None:
    """The words go to one place, and one line that sums up to another."""
    result = run("--message", "Hi.")
    assert (result.exit_code, result.stdout) == (0, "Hello there.\n")
    assert result.stderr.startswith("completed · 0.")
    assert " s · 1 pass · 0 calls · " in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_summary_has_the_cost_where_it_is_known(desk: Path) -> None:
    """As `gambit runs` has it; without a price nothing is said of money."""
    assert "cost" not in run("-m", "Hi.").stderr
    result = run("-m", "Hi.", "--price", "far/away=1000,2000")
    summary = result.stderr.splitlines()[-1]
    into, out = re.findall(r"(\d+) (?:in|out)", summary)
    assert summary.endswith(f" out) · cost {(int(into) + 2 * int(out)) / 1000:g}")


@pytest.mark.parametrize(
    ("cost", "text"),
    [(0, "0"), (0.99750, "0.9975"), (0.000012346, "0.00001235"), (12345.6, "12346")],
)
def test_money_is_read_by_people(cost: float, text: str) -> None:
    """Four digits that count, and no exponent however small it is."""
    assert cost_text(cost) == text


def test_calls_are_told_apart_from_the_answer(desk: Path) -> None:
    """Calls, and why they failed, are notes; words before them end their line."""
    (desk / "script.toml").write_text(CALLING)
    result = run("-m", "Hi.")
    assert result.stdout == "One moment.\nDone.\n"
    calls, problem, summary = result.stderr.splitlines()
    assert calls == 'calls   crm {"note":"Hi."}'
    assert problem.endswith("crm: nobody is there to carry out the external tool crm")
    assert " · 2 passes · 1 call · " in summary


def test_without_streaming_only_the_answer_is_shown(desk: Path) -> None:
    """Words that are no answer stay out of it."""
    (desk / "script.toml").write_text(CALLING)
    assert run("-m", "Hi.", "--no-stream").stdout == "Done.\n"


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_an_answer_that_is_no_text_is_json(desk: Path, stream: str) -> None:
    """What a deck responds with is printed as a document."""
    (desk / "PROMPT.md").write_text(
        '+++\nrespond = true\nresponseSchema = "s.json"\n+++\n\nCount.\n'
    )
    (desk / "s.json").write_text('{"type": "object"}')
    (desk / "script.toml").write_text(
        "[[replies]]\n"
        'calls = [{ name = "gambit_respond", arguments = { payload = { n = 1 } } }]\n'
    )
    result = run("-m", "Hi.", stream)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == {"n": 1}


def test_verbose_shows_calls_whole(desk: Path) -> None:
    """Long arguments are cut unless somebody wants to see them."""
    note = "x" * 300
    (desk / "script.toml").write_text(CALLING.replace("Hi.", note))
    assert note not in run("-m", "Hi.").stderr
    assert note in run("-m", "Hi.", "--verbose").stderr


@pytest.mark.parametrize("context", ['{"n": 7}', "@context.json"])
def test_context_is_json_or_a_file(desk: Path, context: str) -> None:
    """Context is given in words or in a file, and what does not fit is told."""
    (desk / "context.json").write_text('{"n": 7}')
    (desk / "s.json").write_text(
        '{"type": "object", "properties": {"n": {"type": "integer"}},'
        ' "required": ["n"]}'
    )
    (desk / "PROMPT.md").write_text('+++\ncontextSchema = "s.json"\n+++\n\nCount.\n')
    (desk / "script.toml").write_text('[[replies]]\ntext = "Seven."\n')
    result = run("-m", "Hi.", "--context", context)
    assert (result.exit_code, result.stdout) == (0, "Seven.\n")
    refused = run("-m", "Hi.", "--context", "{}")
    assert refused.exit_code == 2
    assert "the key 'n' is missing" in refused.stderr


def test_a_script_may_be_json_lines(desk: Path) -> None:
    """The name of the file says how it is written."""
    (desk / "s.jsonl").write_text('{"text": "From a line."}\n')
    assert run("-m", "Hi.", "--script", "s.jsonl").stdout == "From a line.\n"


def test_a_model_that_cannot_be_asked_shows_a_way_without_one(desk: Path) -> None:
    """The missing key is named; a script that is shown can be used as it stands."""
    command = ["run", ".", "--message", "Hi.", "--model-force", "openai/gpt-5"]
    result = CliRunner(env={"OPENAI_API_KEY": ""}).invoke(main, command)
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: openai/gpt-5 cannot be asked: set OPENAI_API_KEY to your key\n"
        "Or write down what the model says, and give it with --script FILE.toml:\n"
        '  [[replies]]\n  text = "Hello."\n'
        "All that can be in one is in docs/reference/scripted.md.\n"
    )
    (example,) = re.findall(r"(?:^  .*\n)+", result.stderr, re.MULTILINE)
    (desk / "script.toml").write_text(example)
    assert run("-m", "Hi.").stdout == "Hello.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--context", "@none.json"), 2, "--context @none.json: No such file"),
        (("--script", "bad.toml"), 2, "bad.toml: line 2: a reply has no key 'txt'"),
        (("--script", "none.toml"), 2, "'none.toml' does not exist"),
        (("--script", "good.json"), 2, "--script good.json: line 1: not TOML"),
        (("--trace", "none/t.jsonl"), 2, "--trace none/t.jsonl: No such file"),
        (("--price", "far/away=1"), 2, "--price far/away=1 is not MODEL=INPUT,OUTPUT"),
        (("--price", "=1,2"), 2, "--price =1,2 is not MODEL=INPUT,OUTPUT"),
        (("--price", "a=1,-2"), 2, "--price a=1,-2 is not MODEL=INPUT,OUTPUT"),
        (("--max-tokens", "20"), 1, "of 20 tokens 20 are left"),
        (("--max-cost", "1"), 1, "the price of far/away is not known"),
        (("--script", "empty.toml"), 1, "the script has no reply left for "),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    desk: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """Exit 2 for what was asked wrongly, 1 for a run without an answer."""
    (desk / "bad.toml").write_text('[[replies]]\ntxt = "Hi."\n')
    (desk / "empty.toml").write_text("")
    (desk / "good.json").write_text('{"text": "Hello."}')
    result = run("-m", "Hi.", *arguments)
    assert result.exit_code == code
    (error,) = [line for line in result.stderr.splitlines() if "Error: " in line]
    assert words in error
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{", "--context is not JSON: expecting property name enclosed in double"),
        ("@bad.json", "--context @bad.json is not JSON: expecting"),
    ],
)
def test_context_that_is_no_json_shows_the_place(
    desk: Path, given: str, words: str
) -> None:
    """The option is named, and a mark stands below where it goes wrong."""
    (desk / "bad.json").write_text('{\n\t"n": }')
    result = run("-m", "Hi.", "--context", given)
    assert result.exit_code == 2
    error, line, mark = result.stderr.splitlines()
    assert error.startswith(f"Error: {words}")
    assert line[mark.index("^") :] == ("" if given == "{" else "}")


def test_a_script_of_another_kind_is_told_what_there_is(desk: Path) -> None:
    """JSON that is no JSON lines is refused with the names that scripts have."""
    (desk / "good.json").write_text('[{"text": "Hello."}]')
    result = run("-m", "Hi.", "--script", "good.json")
    assert result.exit_code == 2
    assert "TOML (.toml) or has a JSON object a line (.jsonl)" in result.stderr


def test_context_that_is_missing_is_told_with_an_example(desk: Path) -> None:
    """What is shown as an example can be given as it stands."""
    command = ["run", str(SUPPORT), "-m", "Hi.", "--script", "script.toml"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    error, hint = result.stderr.splitlines()
    assert error.endswith("the key 'customerName' is missing")
    example = hint.removeprefix("Give it with --context, such as: --context ")
    assert example == """'{"customerName":"..."}'"""
    command += ["--context", example.strip("'")]
    assert CliRunner().invoke(main, command).stdout == "Hello there.\n"


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ('{"type": "array", "minItems": 1}', "--context JSON, or --context @FILE."),
        ('{"type": "integer"}', "such as: --context '1'"),
        (
            """{"$ref": "#/$defs/A", "$defs": {"A": {
                "type": "object",
                "properties": {"a": {"enum": [7]}, "b": {"type": "boolean"}, "c": {}},
                "required": ["b", "a"]
            }}}""",
            """such as: --context '{"a":7,"b":true}'""",
        ),
    ],
)
def test_the_example_of_a_context_fits_or_is_left_out(
    desk: Path, schema: str, hint: str
) -> None:
    """An example has what the schema insists on, and none is shown that would fail."""
    (desk / "s.json").write_text(schema)
    (desk / "PROMPT.md").write_text('+++\ncontextSchema = "s.json"\n+++\n\nCount.\n')
    result = run("-m", "Hi.")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith(hint)


@pytest.mark.parametrize(
    ("deck", "words"),
    [
        ("none", "there is no deck at none"),
        ("script.toml", "script.toml is not a deck: name a PROMPT.md, or a folder"),
        ("gambit://nope", "there is no built-in deck gambit://nope"),
        ("bare", "there is no PROMPT.md in bare, nor in a folder below it"),
        ("many", "there is no PROMPT.md in many; name a deck:\n  many/0/PROMPT.md\n"),
    ],
)
def test_what_is_no_deck_is_asked_wrongly(desk: Path, deck: str, words: str) -> None:
    """However it is named, it is exit 2; decks below a folder are listed, some."""
    (desk / "bare").mkdir()
    for number in range(7):
        (desk / "many" / str(number)).mkdir(parents=True)
        (desk / "many" / str(number) / "PROMPT.md").touch()
    command = ["run", deck, "-m", "Hi.", "--script", "script.toml"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {words}")
    assert result.stderr.endswith("\n  and 2 more\n") == (deck == "many")


def test_the_current_folder_may_hold_no_deck(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dot is a folder like any other."""
    monkeypatch.chdir(desk.parent)
    result = CliRunner().invoke(main, ["run", ".", "-m", "Hi."])
    assert (result.exit_code, "no PROMPT.md in ." in result.stderr) == (2, True)


@pytest.mark.parametrize("name", ["root.deck.md", "PROMPT.md", "other.deck.md"])
def test_a_deck_may_be_named_by_its_file(desk: Path, name: str) -> None:
    """A PROMPT.md, or a file with a name of old."""
    (desk / "x").mkdir()
    (desk / "x" / name).write_text(DECK)
    command = ["run", f"x/{name}", "-m", "Hi.", "--script", "script.toml"]
    assert CliRunner().invoke(main, command).stdout == "Hello there.\n"


def test_limits_are_those_of_the_run(desk: Path) -> None:
    """A run that comes to a limit fails, and says which."""
    (desk / "script.toml").write_text(CALLING)
    assert run("-m", "Hi.", "--max-tokens", "2000").exit_code == 0
    assert run("-m", "Hi.", "--max-cost", "1", "--price", "far/away=1,2").exit_code == 0
    result = run("-m", "Hi.", "--max-passes", "1")
    assert (result.exit_code, "in 1 pass" in result.stderr) == (1, True)
    (desk / "script.toml").write_text('[[replies]]\nfault = "hang"\n')
    result = run("-m", "Hi.", "--timeout", "0.01")
    assert (result.exit_code, result.stderr.count("0.01 seconds")) == (1, 1)


def test_what_code_prints_is_no_part_of_the_answer(desk: Path) -> None:
    """Code without permissions runs in this process, and prints to standard error."""
    (desk / "shout.py").write_text(
        "from gambit_actors import define_deck\n"
        "def run(ctx):\n    print('AHA')\n    return 'Done.'\n"
        'deck = define_deck(run=run, context_schema={"type": "object"},'
        ' response_schema={"type": "string"})\n'
    )
    (desk / "PROMPT.md").write_text(
        '+++\n[[actions]]\nname = "shout"\ndescription = "Shout."\n'
        'execute = "shout.py"\n+++\n\nShout.\n'
    )
    (desk / "script.toml").write_text(
        '[[replies]]\ncalls = [{ name = "shout" }]\n[[replies]]\ntext = "Yes."\n'
    )
    result = run("-m", "Hi.")
    assert (result.exit_code, result.stdout) == (0, "Yes.\n")
    assert "AHA\n" in result.stderr


@pytest.mark.parametrize(
    ("deck", "code", "words"),
    [("+++\nlabel = 1\n+++\n\nHi.\n", 1, "GD011"), (None, 2, "there is no deck at")],
)
def test_a_deck_that_cannot_run_says_why(
    desk: Path, deck: str | None, code: int, words: str
) -> None:
    """Mistakes are told with their code, and a path that leads nowhere as such."""
    (desk / "other").mkdir()
    if deck is not None:
        (desk / "other" / "PROMPT.md").write_text(deck)
    path = "other" if deck is not None else "none"
    command = ["run", path, "-m", "Hi.", "--script", "script.toml"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == code
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_failed_run_says_why_and_what_it_cost(desk: Path) -> None:
    """The reason is one sentence, the summary the last line, the exit code 1."""
    (desk / "script.toml").write_text(
        '[[replies]]\nfault = "error"\nmessage = "Overloaded."\n'
    )
    result = run("-m", "Hi.")
    assert (result.exit_code, result.stdout) == (1, "")
    error, summary = result.stderr.splitlines()
    assert error == "Error: Overloaded."
    assert summary.startswith("failed · ")


def test_the_trace_has_everything(desk: Path) -> None:
    """The file has the whole run, from its start to its end."""
    assert run("-m", "Hi.", "--trace", "t.jsonl").exit_code == 0
    lines = (desk / "t.jsonl").read_bytes().splitlines()
    events = [decode_event(line) for line in lines]
    assert (events[0].type, events[-1].type) == ("run.start", "run.end")
    assert unbalanced(events) == []


@pytest.mark.parametrize("attack", ["\x1b]0;owned\x07", "\x1b[2J", "[bold]x[/bold]"])
def test_neither_model_nor_deck_can_steer_the_terminal(desk: Path, attack: str) -> None:
    """Controls come out as replacement characters, markup as it is, wherever it is."""
    words = json.dumps(f"A{attack}Z")
    call = f"calls = [{{ name = {words}, arguments = {words} }}]"
    (desk / "script.toml").write_text(
        f"[[replies]]\ntext = {words}\n{call}\n"
        f'[[replies]]\nfault = "error"\nmessage = {words}\n'
    )
    result = run("-m", "Hi.", "--verbose")
    assert result.exit_code == 1
    assert "\x1b" not in result.output
    assert ("[bold]x[/bold]" in result.stdout) == (attack == "[bold]x[/bold]")


@pytest.mark.parametrize("is_unconfined", [True, False])
def test_code_that_cannot_be_confined_runs_only_when_told(
    desk: Path, monkeypatch: pytest.MonkeyPatch, is_unconfined: bool
) -> None:
    """Where nothing confines, an action with permissions is refused unless named."""
    nothing = Platform(is_posix=True, landlock_abi=0, has_filter=False)
    monkeypatch.setattr(confinement, "platform_here", lambda: nothing)
    more = ["--unconfined", "order_lookup"] if is_unconfined else []
    result = look_up_an_order(desk, *more)
    assert (result.exit_code, result.stdout) == (0, "Sent.\n")
    assert ("cannot be kept to its permissions" in result.stderr) != is_unconfined
    assert ("Trail map, Julian Alps" in result.stderr) == is_unconfined


@pytest.mark.slow
@needs_landlock
def test_code_that_can_be_confined_runs(desk: Path) -> None:
    """The support desk's code reads the data that it was granted, and works."""
    result = look_up_an_order(desk)
    assert (result.exit_code, result.stdout) == (0, "Sent.\n")
    assert "Trail map, Julian Alps" in result.stderr


def look_up_an_order(desk: Path, *more: str) -> Result:
    """Run the support desk on a model that looks up an order."""
    (desk / "script.toml").write_text(
        "[[replies]]\ncalls = [\n"
        '{ name = "order_lookup", arguments = { orderNumber = "LL-1001" } }]\n'
        '[[replies]]\nafter = "order_lookup"\ntext = "Sent."\n'
    )
    command = ["run", str(SUPPORT), "--script", "script.toml", "--verbose"]
    command += ["--context", '{"customerName": "Mina"}']
    return CliRunner().invoke(main, [*command, *more])


@pytest.mark.slow
def test_nobody_reading_any_more_ends_the_run_quietly(desk: Path) -> None:
    """A closed pipe cancels the run in order; there is no traceback."""
    (desk / "script.toml").write_text(
        '[[replies]]\ntext = "one two three four"\nper_delta_seconds = 0.05\n'
    )
    arguments = ["run", ".", "-m", "Hi.", "--script", "script.toml", "--trace", "t"]
    with subprocess.Popen(
        [GAMBIT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(3) == b"one"
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (1, b"")
    events = [decode_event(line) for line in (desk / "t").read_bytes().splitlines()]
    assert events[-1].type == "run.end"
    assert unbalanced(events) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_a_signal_ends_quietly_and_in_order(
    desk: Path, number: signal.Signals, code: int
) -> None:
    """Nothing on stderr, and a trace that knows it was cancelled."""
    (desk / "script.toml").write_text(
        '[[replies]]\ntext = "one two three four"\nfault = "hang"\n'
    )
    arguments = ["run", ".", "-m", "Hi.", "--script", "script.toml", "--trace", "t"]
    with subprocess.Popen(
        [GAMBIT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"one"
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (code, b"")
    events = [decode_event(line) for line in (desk / "t").read_bytes().splitlines()]
    end = events[-1]
    assert isinstance(end, RunEnd)
    assert end.status == "cancelled"
    assert unbalanced(events) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
def test_a_closed_terminal_does_not_end_what_nohup_keeps(desk: Path) -> None:
    """SIGHUP stays ignored where it was; the run comes to its end."""
    (desk / "script.toml").write_text(
        '[[replies]]\ntext = "one two three four"\nper_delta_seconds = 0.05\n'
    )
    arguments = [
        "nohup",
        str(GAMBIT),
        "run",
        ".",
        "-m",
        "Hi.",
        "--script",
        "script.toml",
    ]
    with subprocess.Popen(
        arguments, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        first = process.stdout.read(3)
        process.send_signal(signal.SIGHUP)
        rest, _ = process.communicate(timeout=20)
    assert (process.returncode, first + rest) == (0, b"one two three four\n")


@pytest.mark.slow
@needs_landlock
def test_no_process_outlives_a_signal(desk: Path) -> None:
    """Code that was confined is gone when the command is."""
    (desk / "script.toml").write_text(
        "[[replies]]\ncalls = [\n"
        '{ name = "order_lookup", arguments = { orderNumber = "LL-1001" } }]\n'
        '[[replies]]\ntext = "one two three four"\nfault = "hang"\n'
    )
    arguments = ["run", str(SUPPORT), "--script", "script.toml"]
    arguments += ["--context", '{"customerName": "Mina"}']
    with subprocess.Popen([GAMBIT, *arguments], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"one"
        tasks = Path("/proc", str(process.pid), "task").glob("*/children")
        children = [child for task in tasks for child in task.read_text().split()]
        process.terminate()
        assert process.wait(timeout=20) == 143
    assert children
    assert not [child for child in children if Path("/proc", child).exists()]
