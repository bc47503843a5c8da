# SPDX-License-Identifier: BSD-3-Clause
"""Transfers of a model between two frameworks, from its config.json and how each of them spreads it
over ranks, as `reshard model` makes them.

>>> model = reshard.models.config("config.json")
>>> train, serve = model.megatron(tp=8, pp=2), model.vllm(tp=8, ep=True, replicas=2)
>>> moved = reshard.models.transfer(train, serve, to_ranks="16-31", topology="dgx-h100:4")
>>> moved.time_ps, moved.bound_ps
>>> moved.source_of("layers.3.self_attn.qkv_proj.weight", (130, 0), rank=20)
"""

import functools
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Callable, Dict, NamedTuple, Tuple, Union

from . import _library as library
from ._commands import _json, command
from ._layouts import shown, text_option
from ._transfers import ModelTransfer, Place

__all__ = ["Framework", "Model", "ModelTransfer", "Place", "Side", "config", "frameworks",
           "transfer"]  # fmt: skip

_MOST_BYTES = 1 << 24  # of a config


class Framework(NamedTuple):
    """One that holds models, and the words that it takes."""

    name: str
    words: Tuple[str, ...]  # "tp=", "spec=te|local", or alone: "ep"
    what: str


@functools.lru_cache(maxsize=1)
def frameworks() -> Dict[str, Framework]:
    """Those that `reshard model` knows, by name: the methods of a Model."""
    listed = command("model", "--help").partition("Frameworks, and the words that they take:\n")[2]
    rows = re.findall(r"^  (\S+): (.*)\n    (.*)$", listed, re.M)
    return {name: Framework(name, tuple(words.split(", ")), what) for name, what, words in rows}


class Model:
    """A model by its config.json. Its methods are the frameworks; each returns a Side, and takes
    the framework's words (`frameworks()`) by name, with _ for -:

        model.megatron(tp=8, pp=2, vocab_divisible=64), model.vllm(tp=8, ep=True)
    """

    def __init__(self, text: str, name: str):
        self.text = text
        self.name = name  # for messages

    def side(self, words: str) -> "Side":
        """The same from the words of the command line, "vllm tp=8 ep"."""
        return Side(self, text_option("words", words))

    def __getattr__(self, name: str) -> Callable[..., "Side"]:
        if name.startswith("_") or name not in frameworks():
            known = "" if name.startswith("_") else f" (frameworks: {', '.join(frameworks())})"
            raise AttributeError(f"a model has no {name!r}{known}")

        def side(**words) -> Side:
            texts = (_word(key, value) for key, value in words.items())
            return Side(self, " ".join([name, *(text for text in texts if text)]))

        found = frameworks()[name]
        side.__name__, side.__doc__ = name, f"{found.what}. Words: {', '.join(found.words)}"
        return side

    def __dir__(self):
        return [*super().__dir__(), *frameworks()]

    def __repr__(self) -> str:
        return f"<reshard.models.Model {self.name}>"


class Side:
    """How a framework spreads a model over ranks."""

    def __init__(self, model: Model, words: str):
        self.model = model
        self.words = words  # "megatron tp=8 pp=2"

    def __repr__(self) -> str:
        return f"<reshard.models.Side {self.words} of {self.model.name}>"


def _word(key: str, value: Any) -> str:
    """A word of the command line; "" for one that is not given."""
    name = key.replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return name
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    if isinstance(value, str) or hasattr(value, "__index__"):
        text = str(value)
        if text and not re.search(r"\s", text):
            return f"{name}={text}"
    raise library.InputError(
        f"{key}: expected a number, a word, True or a list, found {shown(value)}"
    )


def config(source: Union[str, "os.PathLike[str]", Mapping]) -> Model:
    """A model from its config.json: the path of it, or of the folder that it is in; its text; or
    what is in it, as a dict or a config of Hugging Face's transformers.

    Raises InputError for a family that is not known, and for sizes that are missing or wrong.
    """
    model = _read(source)
    whole = model.side("whole")
    transfer(whole, whole)  # reads all of it
    return model


def _read(source) -> Model:
    if callable(getattr(source, "to_dict", None)):
        source = source.to_dict()
    if isinstance(source, Mapping):
        return Model(_json("config", dict(source)), "config")
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("{"):
        return Model(source.lstrip("\ufeff"), "config")
    if not isinstance(source, (str, os.PathLike)):
        raise library.InputError(
            f"config: expected a path, a text or a dict, found {shown(source)}"
        )
    path = os.fsdecode(source)
    try:
        if os.path.isdir(path):
            path = os.path.join(path, "config.json")
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        return Model(content.decode("utf-8-sig"), path)
    except UnicodeDecodeError:
        raise library.InputError(f"{path}: expected UTF-8 text, found other bytes") from None
    except (OSError, ValueError) as error:
        raise library.InputError(
            f"config: expected a file that can be read, found {shown(path)}: {error}"
        ) from None


def transfer(
    source: Side,
    target: Side,
    *,
    ranks: Union[str, Iterable, None] = None,
    to_ranks: Union[str, Iterable, None] = None,
    dtype: Any = None,
    **options: Any,
) -> ModelTransfer:
    """The transfer of a model from one side to another.

    ranks, to_ranks: those of each side, in the framework's order: "8-11", or numbers. dtype: in
    which weights travel; "fp8": quantised by blocks, with scales (default: what both sides hold).
    Options are those of `plan_job`: topology="dgx-h100:4", planner, memory_limit, extra_memory,
    free_source.

    Raises InputError, which names the word, for what a framework refuses.
    """
    for name, side in (("source", source), ("target", target)):
        if not isinstance(side, Side):
            raise library.InputError(
                f"{name}: expected a side such as model.megatron(tp=8), found {shown(side)}"
            )
    if source.model.text != target.model.text:
        raise library.InputError(
            f"target: expected a side of the model {source.model!r}, found {target!r}"
        )
    return ModelTransfer(source, target, ranks, to_ranks, dtype, options)
