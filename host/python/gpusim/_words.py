"""Keywords as words of the command line, so that both mean the same and fail the same."""

import difflib
import functools
import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from . import _gpusim
from ._gpusim import Error


class Option(NamedTuple):
    """An option of a run."""

    help: str
    is_flag: bool
    is_repeatable: bool


@functools.lru_cache(maxsize=None)
def _options() -> Dict[str, Option]:
    return {name.replace("-", "_"): Option(*rest) for name, *rest in _gpusim.run_options()}


def options() -> Dict[str, str]:
    """All keywords that are options of ``gpusim run``, and what each does."""
    return {name: option.help for name, option in _options().items()}


def check_keywords(keywords: Iterable[str], others: Iterable[str], function: str) -> None:
    """Raises an Error that names the nearest keyword if there is one too many."""
    known = [*_options(), *others]
    for name in keywords:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        only = " It is for the command only." if name in (
            "checkpoint", "checkpoint_every", "checkpoint_stop", "resume", "gdb", "quiet") else ""
        hint = f" (did you mean {near[0]}?)" if near and not only else ""
        raise Error(f"{function}() has no keyword {name}{hint}.{only} gpusim.options() lists them")


def _number(value: float) -> str:
    text = repr(float(value))
    if "." in text or not any(c.isdigit() for c in text):
        return text
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if exponent else f"{mantissa}.0"


def word(value: Any) -> str:
    """A value as it is written on a command line."""
    if isinstance(value, (bytes, str)) or hasattr(value, "__fspath__"):
        return os.fsdecode(value)
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int) or hasattr(value, "__index__"):
        return str(int(value))
    if isinstance(value, float) or hasattr(value, "__float__"):
        return _number(value)
    raise Error(f"expected text, a path or a number, not {value!r}")


def _words(name: str, option: Option, value: Any) -> List[str]:
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        if not option.is_flag:
            raise Error(f"{name}=True: it needs a value")
        return [flag]
    if isinstance(value, Mapping):
        value = [f"{word(k)}={word(v)}" for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        if option.is_repeatable:
            return [f"{flag}={word(v)}" for v in value]
        value = ",".join(word(v) for v in value)
        if not value:
            return []
    return [f"{flag}={word(value)}"]


def command_words(program: Any, args: Iterable[Any],
                  keywords: Mapping[str, Any]) -> Tuple[List[str], List[str]]:
    """What stands behind ``gpusim run``, and behind ``--``."""
    if isinstance(args, (str, bytes)):
        raise Error(f"args={args!r}: expected a list of arguments")
    path = word(program)
    words = ["./" + path if path.startswith("-") else path]
    for name, value in keywords.items():
        words += _words(name, _options()[name], value)
    rest = [word(a) for a in args]
    if keywords.get("entry") is None:
        return words, rest
    return words + [f"--arg={a}" for a in rest], []
