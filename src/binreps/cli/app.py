"""`binreps`: the program. One sentence and exit code 2 for bad usage or data; `--debug` shows where from."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO, get_args, get_type_hints

import typer

from binreps._version import __version__
from binreps.errors import BinrepsError, BinrepsWarning

_HELP = """Repeated yes/no measurements into calibrated decisions, without a gold standard.

Start with `binreps analyse your-file.csv --out results`; without a file it analyses a bundled example."""

_FIRST = """binreps {version}: repeated yes/no measurements into calibrated decisions.

Try first:
  binreps analyse                            the bundled example
  binreps analyse tests.csv --out results    your file: rates, answers, a report
  binreps read tests.csv                     how a messy file would be read
  binreps decide 2/6 --model results/summary.json    one patient
  binreps web                                the same in a browser (pip install 'binreps[web]')

binreps --help lists every command; each has --help with an example."""

_COMMANDS = {  # name: where it is, and what it does
    "analyse": ("analyse", "Estimate prevalence and error rates, score everyone, decide, write a report."),
    "read": ("read", "Show how a file is read: the part of every column, every odd word."),
    "score": ("score", "Score new individuals with an earlier fit, at the costs of that analysis."),
    "decide": ("bedside", "One patient: the answer, the chance, what it rests on, and the next step."),
    "card": ("bedside", "A card for the bedside that works offline: enter s of n, read the answer."),
    "table": ("tools", "What to answer for the next individual, perhaps at other costs."),
    "simulate": ("tools", "Data from the model, with the true statuses, for trying things out."),
    "theory": ("tools", "Bias and spread of the average and the median, in closed form."),
    "web": ("web", "Serve a page where costs and priors move with the mouse."),
    "next": ("advice", "Another replicate, or enough? And whom to measure again now."),
    "plan": ("advice", "How many individuals, how many replicates each?"),
    "prior": ("advice", "From what you know to a prior, shown back as quantiles."),
}


class _Light:
    """A command that converts the words of its options itself: for that, Typer loads Pydantic (.05 s)."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in params:
            if "process_value" not in vars(one):
                one.process_value = partial(
                    _value, one.process_value, self._kinds.get(one.name), one.required
                )
        return params

    @cached_property
    def _kinds(self) -> dict[str, type | None]:
        """What words become, by option."""
        hints = get_type_hints(self.callback)  # type: ignore[attr-defined]
        return {name: _kind(hint) for name, hint in hints.items()}


def _kind(hint: Any) -> type | None:
    """What the words of an option become: int of `list[int] | None`; None if Typer makes more of them."""
    while parts := get_args(hint):
        hint = parts[0]
    return hint if hint in (str, int, float, Path) else None


def _value(
    ask: Callable[[Any, Any], Any], kind: type | None, required: bool, context: Any, words: Any
) -> Any:
    """The value of an option; Typer is asked about flags, and to refuse."""
    if words is None or words == ():
        return ask(context, words) if required else words
    if kind is None:
        return ask(context, words)
    try:
        return [kind(word) for word in words] if isinstance(words, list | tuple) else kind(words)
    except (TypeError, ValueError):
        return ask(context, words)


class _Command(_Light, typer.core.TyperCommand):
    """A command."""


class _Commands(_Light, typer.core.TyperGroup):
    """The commands, each loaded when it is asked for: `--help` waits for none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What the list says of one."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        return typer.core.TyperCommand(cmd_name, short_help=_COMMANDS[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command to run."""
        if args[0] not in _COMMANDS:
            return super().resolve_command(ctx, args)
        if _will_draw(args):
            ctx.obj = _begun(ctx)
        return args[0], command(args[0]), args[1:]


def _will_draw(words: list[str]) -> bool:
    """Whether a command will write a report with figures."""
    given = {word.partition("=")[0] for word in words}
    return words[0] == "analyse" and "--out" in given and not {"--by", "--help"} & given


def _begun(ctx: Any) -> Any:
    """A pen, begun before the command is loaded and put away when it ends."""
    from binreps.show.pen import new_pen

    pen = new_pen()
    if pen is not None:
        ctx.call_on_close(pen.close)
    return pen


def command(name: str) -> Any:
    """A command with its options."""
    _load_later("numpy.f2py", "numpy.testing")
    function = getattr(import_module(f"binreps.cli.{_COMMANDS[name][0]}"), f"{name}_command")
    if "duckdb" not in sys.modules:  # it complains at the end of what nobody looked for
        gc.freeze()  # what is loaded by now stays: garbage is not looked for there, at the end either
    alone = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    alone.command(name, cls=_Command)(function)
    return typer.main.get_command(alone)


def _load_later(*names: str) -> None:
    """Have modules loaded when they are first used: SciPy touches all that NumPy has, which takes .07 s."""
    for name in names:
        spec = find_spec(name)
        if name in sys.modules or spec is None or spec.loader is None:
            continue
        spec.loader = LazyLoader(spec.loader)
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        parent, _, own = name.rpartition(".")
        setattr(sys.modules[parent], own, module)


app = typer.Typer(
    cls=_Commands,
    help=_HELP,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


_GARBAGE = 50_000  # new objects until garbage is looked for: modules make them, and all of these stay
_KEYWORD = re.compile(r"\b([a-z_]+)=…")  # of Python, in a sentence: an option here
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")  # products are small: more threads wait, for each other and us
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print(f"binreps {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
) -> None:
    """The options before any command; without one, what to try first."""
    del version, debug  # what they ask for is done before
    if context.invoked_subcommand is None:
        print(_FIRST.format(version=__version__))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and leave with its exit code: 0 fine, 2 bad usage or data, 1 a mistake of ours."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    os.environ.setdefault(*_ONE_THREAD)
    gc.set_threshold(_GARBAGE)
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup, which ignores one, is respected
            signal.signal(number, _end)
    sys.exit(_run([word for word in given if word != "--debug"], debug))


def _end(number: int, _: Any) -> NoReturn:
    """Leave as at Ctrl-C: what was begun is cleaned up."""
    raise KeyboardInterrupt(number)


def _run(arguments: list[str], debug: bool) -> int:
    """The exit code of a run."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            return int(app(arguments, prog_name="binreps", standalone_mode=False) or 0)
    except KeyboardInterrupt as stopped:
        return 128 + int(stopped.args[0] if stopped.args else signal.SIGINT)
    except Exception as error:
        if debug:
            raise
        sentence, code = _explained(error)
        print(f"binreps: {sentence}", file=sys.stderr)
        return code


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning of ours as a sentence, without a line of code that nobody at a terminal has written."""
    said = f"binreps: {message}\n"
    if not issubclass(category, BinrepsWarning):
        said = warnings.formatwarning(message, category, filename, lineno, line)
    print(said, file=file or sys.stderr, end="")


def _explained(error: Exception) -> tuple[str, int]:
    """One sentence for the user, and the exit code."""
    if isinstance(error, BinrepsError):
        return _KEYWORD.sub(lambda found: "--" + found[1].replace("_", "-"), str(error)), 2
    if hasattr(error, "format_message"):  # bad usage, found while parsing
        path = getattr(getattr(error, "ctx", None), "command_path", "binreps")
        return f"{' '.join(str(error.format_message()).split())} ({path} --help shows how)", 2
    if isinstance(error, OSError):
        place = f" {error.filename}" if error.filename else ""
        return f"{error.strerror or error}{place}", 2
    return f"unexpected {type(error).__name__}: {error}; please report it with the output of --debug", 1
