# SPDX-License-Identifier: BSD-3-Clause
"""The command lines whose outputs are pinned, and the files that they read."""

import itertools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

MACHINES = ["dgx-h100:2", "dgx-a100", "pcie-8x3090", "gb200-nvl72", "l40s-8", "nvswitch:8"]
# mesh, shape, dtype, from, to
REQUESTS = [
    ("2x3", "12,10,7", "f16", "P(sum)S(1)", "S(0)R"),
    ("2x3", "12,10,7", "bf16", "P(avg)R", "RS(2)"),
    ("2x3", "12,10,7", "f64", "_S(0,2)S(0)", "S(1)S(2)"),
    ("2x3", "12,10,7", "c64", "RS(0)", "P(sum)R"),
    ("2x3", "12,10,7", "i32", "P(bxor)P(bxor)", "RR"),
    ("4x2", "512,1024", "f32", "S(0)S(1)", "S(1)S(0)"),
    ("8", "1048576", "f32", "P(sum)", "S(0)"),
    ("2x4", "3,5", "u8", "S(0)S(0)", "S(1)R"),
    ("8", "4096,4096", "bf16", "S(0)", "R"),
    ("2x2x2", "64,64,64", "f32", "S(0)S(1)S(2)", "S(2)S(0)R"),
]
# What else a request can be: onto other ranks, of no elements, a scalar, of PyTorch's line.
OTHER_REQUESTS = [
    ["--mesh", "4", "--to-mesh", "4", "--to-ranks", "4-7", "--shape", "64,64", "--from", "S(0)",
     "--to", "S(1)"],
    ["--mesh", "dp=2,tp=2", "--to-mesh", "6", "--to-ranks", "2-7", "--shape", "13,9", "--from",
     "S(0)P(sum)", "--to", "S(1)"],
    ["--mesh", "4", "--shape", "0,5", "--from", "S(0)", "--to", "R"],
    ["--mesh", "4", "--shape", "", "--from", "P(sum)", "--to", "R"],
    ["--mesh", "2x2", "--shape", "8,8", "--from", "RR", "--to", "RR"],
    ["--mesh", "16", "--shape", "1000,3", "--from", "P(max)", "--to", "S(0)", "--memory-limit",
     "64KiB"],
    ["--mesh", "8", "--shape", "8192,8192", "--from", "S(0)", "--to", "S(1)", "--memory-limit",
     "1MiB"],
]  # fmt: skip
# Options of which every value is tried: those that the program names.
REQUEST = ["plan", "--mesh", "2", "--shape", "2", "--from", "R", "--to", "R"]
ASKED = [[*REQUEST, "--planner"], [*REQUEST, "--transport"],
         ["topo", "convert", MACHINES[0], "--to"]]  # fmt: skip
REPORTS = [["--json"], ["-v"], ["--html", "-"]]
OPERATORS = [
    ["mm", "--mesh", "4", "--in", "S(0)", "--shape", "64,32", "--in", "S(0)", "--shape", "32,16"],
    ["mm", "--mesh", "2x2", "--in", "S(1)R", "--shape", "8,8", "--in", "S(0)S(1)", "--shape",
     "8,8", "--dtype", "bf16"],
    ["add.Tensor", "--mesh", "4", "--in", "P(sum)", "--shape", "8", "--in", "R", "--shape", "8"],
    ["sum.dim_IntList", "--mesh", "dp=2,tp=4", "--in", "S(0)S(1)", "--shape", "8,8", "--attr",
     "dim=[1]"],
    ["_softmax", "--mesh", "4", "--in", "S(1)", "--shape", "8,8", "--attr", "dim=1"],
    ["view", "--mesh", "4", "--in", "S(0)", "--shape", "8,6", "--attr", "size=[48]"],
    ["embedding", "--mesh", "4", "--in", "S(0)", "--shape", "32,8", "--in", "R", "--shape", "5",
     "--dtype", "f32", "--dtype", "i64"],
    ["cat", "--mesh", "4", "--in", "S(0)", "--shape", "8,2", "--in", "S(1)", "--shape", "8,4",
     "--attr", "dim=1"],
    ["transpose.int", "--mesh", "2x4", "--in", "S(0)S(1)", "--shape", "8,16", "--attr", "dim0=0",
     "--attr", "dim1=1"],
    ["native_layer_norm", "--mesh", "4", "--in", "S(1)", "--shape", "4,8", "--in", "R", "--shape",
     "8", "--in", "R", "--shape", "8", "--attr", "normalized_shape=[8]", "--attr", "eps=0.00001"],
    ["diff", "--mesh", "4", "--in", "S(0)", "--shape", "8,6", "--attr", "n=2"],
    ["diff", "--mesh", "4", "--in", "S(0)", "--shape", "8,6", "--attr", "=2"],
    ["no_such_operator", "--mesh", "4", "--in", "R", "--shape", "4"],
    ["mm", "--mesh", "4", "--in", "S(0)", "--shape", "64,32", "--in", "S(0)", "--shape", "31,16"],
    [],
]  # fmt: skip


def lay_out(root, folder):
    """Puts every input of the repository into the folder: shipped files, those of the fuzzers and
    those inside golden scenarios. Returns their names, in order."""
    (folder / "traces").symlink_to(root / "traces")
    names = [str(p.relative_to(root)) for p in sorted((root / "traces").rglob("*"))
             if p.suffix in (".copies", ".jsonl", ".topo", ".xml", ".txt")]  # fmt: skip
    (folder / "fuzz").symlink_to(root / "tests/fuzz/corpus")
    for kind in ("check", "machine_file", "matrix", "measured", "measurements", "plan", "report",
                 "topology", "trace"):  # fmt: skip
        found = sorted((root / "tests/fuzz/corpus" / kind).iterdir())
        names += [f"fuzz/{kind}/{path.name}" for path in found]
    for path in sorted((root / "tests/golden").glob("*.golden")):
        parts = re.split(r"^--- (?:file (\S+)|.*)\n", path.read_text(), flags=re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2]):
            if name:
                target = folder / path.stem / name
                target.parent.mkdir(exist_ok=True)
                target.write_text(text)
                names.append(f"{path.stem}/{name}")
    return names


def is_large(name):
    """Whether a trace moves a whole model, or a thousand tensors one by one: that takes seconds."""
    return "rl-sync" in name or "p2p-sweep" in name


def readers(name):
    """How the program reads a file, by its kind."""
    suffix = pathlib.PurePath(name).suffix
    if "measure" in name or "calibrat" in name or "files" in name and suffix in (".txt", ".json"):
        yield ["calibrate", "--topology", "dgx-h100", "--compare", name]
    if name.startswith("fuzz/report"):
        yield ["compare", name, name]
    elif suffix == ".plan":
        yield ["simulate", "--plan", name]
    elif suffix == ".copies":
        yield ["check", name]
    elif suffix == ".jsonl":
        yield ["replay", name, "--data-budget", "16MiB"]
    else:
        yield ["topo", "show", name]


def of_requests(values):
    for mesh, shape, dtype, source, target in REQUESTS:
        words = ["--mesh", mesh, "--shape", shape, "--dtype", dtype, "--from", source, "--to",
                 target]  # fmt: skip
        for planner in values["--planner"]:
            by = [*words, "--planner", planner]
            yield ["plan", *by, "--emit", "plan"]
            yield ["simulate", *by, "--json"]
            yield ["simulate", *by, "--perfetto", "-"]
        for report, command in itertools.product(REPORTS, ("plan", "simulate")):
            yield [command, *words, *report]
        yield ["plan", *words, "--explain"]
        yield ["simulate", *words, "--cold", "-v"]
        yield ["plan", *words, "--emit", "alltoallv-matrix"]
        for machine in MACHINES:
            yield ["simulate", *words, "--topology", machine, "--json"]
            yield ["simulate", *words, "--topology", machine, "--html", "-"]
        for transport in values["--transport"]:
            yield ["simulate", *words, "--transport", transport, "-v"]
    for words in OTHER_REQUESTS:
        for report in REPORTS:
            yield ["simulate", *words, *report]


def of_sweeps():
    for dtype, report in itertools.product(("f32", "i16"), (*REPORTS, ["--csv", "-"])):
        yield ["sweep", "--mesh", "2x3", "--shape", "7,5", "--dtype", dtype, "--placements",
               "R,S(0),S(1),P(sum),P(max)", *report]  # fmt: skip
    yield ["sweep", "--mesh", "2", "--mesh", "4x2", "--shape", "64,64", "--topology", "dgx-a100:2"]


def of_replays(inputs):
    traces = [name for name in inputs if name.startswith("traces/") and name.endswith(".jsonl")]
    for trace in traces:
        if is_large(trace):
            yield ["replay", trace, "--data", "proof", "--planner", "p2p", "--json"]
            yield ["replay", trace, "--data", "proof", "--planner", "packed", "-v"]
            continue
        for report in REPORTS:
            yield ["replay", trace, "--data-budget", "64MiB", *report]
        yield ["replay", trace, "--data", "proof", "--perfetto", "-"]
        yield ["replay", trace, "--data", "proof", "--dispatch", "best", "--json"]
        for other in (["--reorder"], ["--explicit"], ["--prefetch", "2"], ["--planner", "p2p"],
                      ["--launch-order-implicit"], ["--topology", "dgx-a100:2"],
                      ["--communicators", "pairwise", "--cold"], ["--communicators", "cached"],
                      ["--communicators", "stream-per-pair"], ["--communicators", "split"]):
            yield ["replay", trace, "--data", "proof", "-v", *other]  # fmt: skip
    for name in inputs:
        if name.endswith(".jsonl") and not name.startswith("traces/"):
            yield ["replay", name, "--data-budget", "16MiB", "--json"]
            yield ["replay", name, "--data-budget", "16MiB", "-v"]


def of_machines(inputs, values):
    yield ["topo", "list"]
    machines = [*MACHINES, *(name for name in inputs if ["topo", "show", name] in readers(name))]
    for name in machines:
        yield ["topo", "show", name]
        yield ["topo", "show", name, "--json"]
        yield ["topo", "show", name, "--emit", "topology"]
        yield ["topo", "show", name, "--svg", "-"]
        yield ["topo", "check", name]
        for form in values["--to"]:
            yield ["topo", "convert", name, "--to", form]
        for ranks, report in (("4", ["-v"]), ("2", ["--html", "-"])):
            yield ["simulate", "--mesh", ranks, "--shape", "512,512", "--from", "S(0)", "--to",
                   "S(1)", "--topology", name, *report]  # fmt: skip
        for network in (":2,nics=1", ":3,nics=2,oversubscription=3"):
            yield ["topo", "show", name + network, "-v"]


def of_measurements(inputs):
    for name in inputs:
        for command in readers(name):
            if command[0] == "calibrate":
                yield [*command, "--json"]
                yield ["calibrate", "--topology", "dgx-a100", "--output", "-", name]
                yield ["calibrate", "--topology", "dgx-h100", "-v", name, "--holdout", "n=4"]
            elif command[0] == "compare":
                yield command
                yield [*command, "--html", "-"]


def commands(inputs, reshard):
    values = {words[-1]: built.values_of(reshard, *words) for words in ASKED}
    yield from of_requests(values)
    yield from of_sweeps()
    yield from of_replays(inputs)
    yield from of_machines(inputs, values)
    yield from of_measurements(inputs)
    for words in OPERATORS:
        yield ["ops", *words]
        yield ["ops", *words, "--json"]
    for name in inputs:
        if name.endswith(".plan"):
            yield ["plan", "--plan", name, "-v"]
            yield ["simulate", "--plan", name, "--json"]
        if name.endswith(".copies"):
            yield ["check", name, "-v"]
            yield ["check", name, "--json"]
            yield ["check", name, "--topology", "dgx-h100:2", "--without", "each"]
            yield ["check", name, "--topology", "dgx-a100", "--without", "each", "--json"]
            yield ["layout", name]
            yield ["layout", name, "--json"]
            yield ["plan", "--requests", name]
            for form in ("copies", "descriptors", "csv", "mooncake"):
                yield ["plan", "--requests", name, "--planner", "p2p", "--emit", form]
    yield ["layout", "--mesh", "2x3", "--shape", "12,10,7", "--placements", "_S(0,2)S(1)"]
    yield ["where", "k_proj[2,:]", "traces/checks/qkv.copies", "--json"]
    digest = ["digest", "--layout", "traces/checks/qkv.copies"]
    weights, expected, found = (
        f"traces/checks/qkv.{kind}" for kind in ("safetensors", "expected.json", "found.json"))
    for rows in ([], ["--rows", "1"], ["--rows", "3", "--side", "both"]):
        yield [*digest, "--weights", weights, *rows]
    for options in ([], ["--json"], ["--weights", weights, "-v"], ["--before", found]):
        yield [*digest, "--expect", expected, found, *options]
    kv = ["kv", "--config", "traces/models/llama3-70b.json", "--from", "tp=4 pp=2", "--to", "tp=8",
          "--block", "16", "--to-block", "64", "--tokens", "100"]  # fmt: skip
    for report in (*REPORTS, ["--emit", "layout"], ["--emit", "descriptors"]):
        yield [*kv, "--data", "proof", *report]
    yield ["kv", "--config", "traces/models/deepseek-v3.json", "--from", "tp=2", "--to",
           "tp=4 dcp=4 interleave=1", "--block", "64", "--tokens", "300"]  # fmt: skip
    # Not of `validate`: it names the backends that were found.
    for name in ("plan", "simulate", "replay", "sweep", "topo", "calibrate", "check",
                 "digest", "layout", "where", "kv", "compare", "ops"):  # fmt: skip
        yield [name, "--help"]
    yield ["manual"]
    yield ["completion", "bash"]
