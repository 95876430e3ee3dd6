"""What the converter understands of a call site. Frozen: nothing is decided after it is made."""

import dataclasses
import enum

import libcst as cst


class UnconvertibleError(Exception):
    """The reason for leaving a call site alone."""


class UnfinishedError(Exception):
    """The call site needs a person: the reason, and what goes into the comment."""

    def __init__(self, reason: str, advice: tuple[str, ...]) -> None:
        super().__init__(reason)
        self.advice = advice


class Use(enum.Enum):
    """How much of an output the program reads."""

    NOTHING = "nothing"
    LAST = "last row"
    FLIPPED = "all rows, backwards"
    ALL = "all rows"


@dataclasses.dataclass(frozen=True)
class Sequence:
    """One entry of ``sequences``."""

    code: str
    taps: tuple[int, ...]
    length: str  # what its length is, in a form that can be compared


@dataclasses.dataclass(frozen=True)
class Sequences:
    """All sequences: either one by one, or as a single expression for a list of them."""

    entries: tuple[Sequence, ...] = ()
    spread: str | None = None


@dataclasses.dataclass(frozen=True)
class Output:
    """One output of the step, with the state it starts from if it is recurrent."""

    init: str | None = None
    taps: tuple[int, ...] | str | None = (
        None  # a str: the expression for them; None: the last row only
    )
    generator: bool = False  # a random generator: not stacked, its final value is the output
    names: tuple[str, ...] = ()  # the step's own names for its past, where they can be seen

    @property
    def recurrent(self) -> bool:
        """Whether the step sees its past."""
        return self.init is not None


@dataclasses.dataclass(frozen=True)
class Return:
    """One return statement of the step (or the body of a lambda)."""

    node: cst.CSTNode
    outputs: tuple[str, ...] | None  # one by one, where they are written out
    whole: str  # all of them
    until: str | None  # the stop condition
    has_updates: bool  # an empty dictionary stands between the two
    single: bool  # `whole` is surely one variable


@dataclasses.dataclass(frozen=True)
class Step:
    """The step function."""

    call: str  # the expression to call it by
    node: cst.FunctionDef | cst.Lambda | None  # where it is written, if in this file
    params: (
        tuple[str, ...] | None
    )  # its positional parameters; None: any number, or not in this file
    returns: tuple[Return, ...]
    rewritable: bool  # it is used here only, and nothing in its form stands in the way
    pure: bool  # it surely makes no shared variables


@dataclasses.dataclass(frozen=True)
class Reads:
    """How the program reads one output after the call."""

    use: Use
    last: tuple[cst.CSTNode, ...] = ()  # `out[-1]`
    flipped: tuple[cst.CSTNode, ...] = ()  # `out[::-1]`
    buffers: tuple[cst.CSTNode, ...] = ()  # `out.owner.inputs[0]`: the initial state and all rows


class Form(enum.Enum):
    """What stands around the call."""

    NAMES = "an assignment to one plain name for each output"
    TARGET = "an assignment to something else"
    VALUE = "a larger expression"


@dataclasses.dataclass(frozen=True)
class Result:
    """What becomes of the value of the call."""

    form: Form
    targets: tuple[str, ...] = ()
    reads: tuple[Reads, ...] = ()  # one for each target, when these are names
    node: cst.CSTNode | None = None  # in a larger expression: what stands for the outputs
    take_last: bool = False  # that expression is `call[-1]`
    updates: str | None = None  # the name to which the updates go, if anybody reads it
    pair: bool = False  # the expression stands for the pair (outputs, updates)


@dataclasses.dataclass(frozen=True)
class Site:
    """A call site, understood."""

    call: cst.Call
    statement: cst.SimpleStatementLine
    sequences: Sequences
    outputs: tuple[Output, ...] | None  # None: as many as the step returns, which cannot be seen
    non_sequences: tuple[str, ...]
    n_steps: str | None
    backwards: bool
    cut: bool  # the sequences may differ in length
    truncate_gradient: str | None
    name: str | None
    as_list: bool  # the old result is a list
    reduced: bool  # the old function gives the last rows only
    step: Step
    result: Result
    prelude: tuple[str, ...] = ()  # statements to go in front
    dropped: tuple[cst.CSTNode, ...] = ()  # statements that nobody needs any more
    notes: tuple[str, ...] = ()
    todo: str | None = None
