"""``python -m pytensor_loop.migrate PATH...``: the command line of the converter."""

import argparse
import collections
import difflib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


_EPILOG = """\
What can become of a call site:
  converted
  converted with a TODO   check what the comment above it says
  left with a TODO        it still runs as it was; the comment says how to go on
  left alone              for the reason given

exit code: 0 all call sites were converted; 1 something is left to do; 2 a file could not be read
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    if importlib.util.find_spec("libcst") is None:
        parser.error('LibCST is needed: pip install "pytensor-loop[migrate]"')
    verdicts: collections.Counter[str] = collections.Counter()
    failed = False
    for path in _python_files(options.paths):
        try:
            verdicts += _migrate(path, options)
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            print(f"{path}: cannot be read: {error}", file=sys.stderr)
            failed = True
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"{verdicts.total()} call sites{': ' if counts else ''}{counts}", file=sys.stderr)
    if failed:
        return 2
    return 0 if verdicts.total() == verdicts["converted"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytensor_loop.migrate",
        description="Rewrite calls of pytensor.scan and its relatives for pytensor_loop.scan. "
        "The report goes to the standard error, the diff to the standard output.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a file, or a directory to search"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--diff", action="store_true", help="show what would change (the default)")
    what.add_argument("--write", action="store_true", help="change the files")
    parser.add_argument(
        "--equal-lengths",
        action="store_true",
        help="trust that all sequences of a call are equally long: do not cut them to the shortest",
    )
    return parser


def _python_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _migrate(path: Path, options: argparse.Namespace) -> collections.Counter[str]:
    """Convert one file; return how often each verdict was given."""
    import libcst as cst

    from pytensor_loop.migrate._convert import convert

    text, newline = _read(path)
    try:
        conversion = convert(text, equal_lengths=options.equal_lengths)
    except cst.ParserSyntaxError as error:
        raise SyntaxError(str(error)) from error
    for outcome in conversion.outcomes:
        remarks = "; ".join(" ".join(remark.split()) for remark in outcome.remarks)
        print(
            f"{path}:{outcome.line}: {outcome.verdict}{remarks and ': '}{remarks}", file=sys.stderr
        )
    if options.write and conversion.text != text:
        with path.open("w", encoding="utf-8", newline=newline) as file:
            file.write(conversion.text)
    elif conversion.text != text:
        print(_diff(path, text, conversion.text), end="")
    return collections.Counter(outcome.verdict for outcome in conversion.outcomes)


def _read(path: Path) -> tuple[str, str]:
    """Return the text of a file with plain line ends, and the line end that it uses."""
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    crlf = "\r\n" in text
    return text.replace("\r\n", "\n"), "\r\n" if crlf else "\n"


def _diff(path: Path, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
