#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The source rules that a compiler does not check: which folder may include which, sizes, names,
and what `core` and `sim` must not touch.
"""

import argparse
import collections
import pathlib
import re
import sys
import tempfile

# Who knows kinds of steps, beside the plan itself: what joins plans, their text, the check of their
# structure, and the one place that says what a step means. Planners make them; all else runs what
# core/schedule makes of them, and asks at most whether a step is a collective.
STEP_KINDS = (
    "core/plan/plan.h",
    "core/plan/join.cpp",
    "core/plan/written_out.cpp",
    "core/text/plan_text.cpp",
    "core/text/plan_reader.cpp",
    "core/proof/structure.cpp",
    "core/schedule/lowering.cpp",
)
BACKEND_INTERFACE = ("backends/registry/backend.h", "backends/registry/mpi_module.h")
# JSON that is read anywhere else has no bounds, and integers of it may wrap.
JSON_READER = ("sim/inputs/json_reader.cpp", "sim/inputs/json_reader.h")
UNBOUNDED_JSON = r"[Jj]son::(sax_)?parse\(|\.get<(std::u?int\d+_t|int)>\(\)"
MAX_COLUMNS = 100
MAX_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_SOURCES = 20  # of C++ in a folder, headers too

# In core and sim nothing may depend on the clock, chance, the environment or the order of a hash
# table.
FORBIDDEN = [
    (r"std::random_device|\brandom_device\b", "random_device"),
    (
        r"\b(steady_clock|system_clock|high_resolution_clock)\b|\bclock_gettime\b|\bgettimeofday\b",
        "a clock",
    ),
    (r"\bgetenv\b", "the environment"),
    (r"\bsetlocale\b|std::locale\b", "a locale"),
    (
        r"std::(mt19937|default_random_engine|uniform_int_distribution)",
        "a library random generator",
    ),
    (r"#include <(cuda|mpi|nccl|thrust)[^>]*>", "a vendor header"),
    (
        r"std::unordered_(multimap|multiset)\b",
        "an unordered container of equal keys (look-ups only, in a map or a set)",
    ),
    (
        r"\bstd::exit\b|\babort\(\)|\bassert\(",
        "exit, abort or assert (throw one of the three errors)",
    ),
    (
        r"static (?!constexpr|const |inline|_?assert|_cast)(?:std::|int|double|bool)[\w:<>, ]* "
        r"\w+( =|;|\{)",
        "something static and mutable",
    ),
]
ONLY_CORE = [(r"std::(thread|jthread|async|mutex)\b", "a thread")]
SOURCES = (".h", ".hpp", ".c", ".cpp", ".cu")
CODE = SOURCES + (".py", ".sh")
PAGES = (".md", ".cmake")  # of these only the width is looked at
LAST_WORDS = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")


def folder_of(path):
    parts = path.parts
    if parts[0] in ("core", "sim", "backends") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def arrows_of(build_file):
    """Folder -> the folders whose headers it may include: those of the parts that its part LINKS in
    CMakeLists.txt, and of theirs."""
    part_of, links = {}, {}
    for part, words in re.findall(r"^ *reshard_part\((\S+)\s([^)]*)\)", build_file, re.MULTILINE):
        rows = re.split(r"\b(FOLDER|EXCEPT|SOURCES|LINKS|PACKAGES)\b", words)
        rows = {key: row.split() for key, row in zip(rows[1::2], rows[2::2])}
        part_of |= {folder: part for folder in rows.get("FOLDER", [])}
        links[part] = rows.get("LINKS", [])

    def reached(part):
        return {part}.union(*(reached(below) for below in links.get(part, [])))

    folders = {part: folder for folder, part in part_of.items()}
    return {
        folder: {folders[below] for below in reached(part) if below in folders}
        for folder, part in part_of.items()
    }


def include_problems(path, text, arrows):
    home = folder_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#include "([^"]+)"', line)
        if not found:
            continue
        target = pathlib.PurePosixPath(found[1])
        if len(target.parts) < 2:
            yield f'{path}:{number}: include from the root of the repository, found "{target}"'
            continue
        aim = folder_of(target)
        allowed = (
            aim in {home} | arrows.get(home, set())
            or home == "tests"
            or (home == "tools" and aim != "tests")
            # What every backend implements; the registry links them all.
            or (home.startswith("backends/") and target.as_posix() in BACKEND_INTERFACE)
            or (home == "backends/registry" and aim.startswith("backends/"))
        )
        if not allowed:
            yield f"{path}:{number}: {home} may not include {aim}"


def function_problems(path, text):
    """A heuristic: in formatted code a function body runs from a line that ends in '{' at column 0
    to the next '}' at column 0."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(
            r"[\w:~<>\[\]\*& ].*\)( const| noexcept| override)*( : .*)? \{$", line
        ) and not line.startswith((" ", "namespace", "struct", "class", "enum")):
            start = number
        elif line.startswith("}") and start is not None:
            length = number - start + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{path}:{start}: a function of {length} lines, at most {MAX_FUNCTION_LINES}"
            start = None


def word_problems(path, text):
    rules = []
    if path.parts[0] in ("core", "sim"):
        rules += FORBIDDEN
    if path.parts[0] == "core":
        rules += ONLY_CORE
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        for pattern, what in rules:
            if re.search(pattern, code):
                yield f"{path}:{number}: {path.parts[0]} may not use {what}"
        if LAST_WORDS.search(line):
            yield f"{path}:{number}: a note to do without an issue number"
        if "\t" in line and path.suffix != ".golden":
            yield f"{path}:{number}: a tab"
        if line.endswith(" "):
            yield f"{path}:{number}: a trailing blank"


def width_problems(path, text):
    """Pages may show tables and output, as wide as they are, and an address stays whole."""
    shown = False
    for number, line in enumerate(text.splitlines(), 1):
        if path.suffix == ".md":
            shown ^= line.startswith("```")
            if shown or line.startswith("|"):
                continue
        if len(line) > MAX_COLUMNS and "://" not in line:
            yield f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"


def step_problems(path, text):
    if path.as_posix() in STEP_KINDS or path.parts[0] == "tests":
        return
    kinds = r"<(Copy|Fill|Exchange|Collective|Reduce)Step>"
    asks = rf"(get|get_if|holds_alternative){kinds}|visit\(.*body"
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(asks, line):
            yield f"{path}:{number}: kinds of steps are asked for in {STEP_KINDS} only"


def json_problems(path, text):
    if path.as_posix() in JSON_READER or path.parts[0] == "tests":
        return
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(UNBOUNDED_JSON, line.split("//")[0]):
            yield f"{path}:{number}: JSON and its integers are read by {JSON_READER[1]} only"


def unordered_walks(path, text):
    """An unordered map or set may be looked up in, never walked."""
    if path.parts[0] not in ("core", "sim"):
        return
    names = re.findall(r"std::unordered_(?:map|set)<[^;]*> (\w+)[;{ =(]", text)
    for name in names:
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(rf"for \(.*: {name}\)", line) or re.search(rf"\b{name}\.begin\(\)", line):
                yield f"{path}:{number}: walks the unordered {name}"


def types_of(text):
    """Full names of the types that a file defines for others to see."""
    spaces = []
    for line in text.splitlines():
        if opened := re.match(r"namespace ?([\w:]*) {$", line):
            spaces.append(opened[1])
        elif re.match(r"}  // namespace", line) and spaces:
            spaces.pop()
        elif made := re.match(r"(?:struct|class|enum class) (\w+)( .*)?$", line):
            declared = line.endswith(";") and "{" not in line
            if all(spaces) and not declared:
                yield "::".join(spaces + [made[1]])


def type_problems(files):
    """Two types of one name in one program are undefined behaviour that no compiler reports. The
    C++ header is compiled by users only, beside a library that hides its own.
    """
    seen = {}
    for path, text in files:
        if path.suffix not in SOURCES or path.parts[0] == "tests" or path.suffix == ".hpp":
            continue
        for name in types_of(text):
            if name in seen:
                yield f"{path}: {name} is also a type of {seen[name]}"
            seen[name] = path


def files_of(root):
    tops = ("core", "sim", "backends", "tools", "tests", "cmake", "traces", "docs")
    inside = [p for top in tops for p in sorted((root / top).rglob("*"))]
    for full in sorted(root.glob("*")) + inside:
        path = pathlib.PurePosixPath(full.relative_to(root).as_posix())
        if path.suffix in CODE + PAGES or path.name == "CMakeLists.txt":
            yield path, full.read_text()


def folder_problems(paths):
    """A folder that a reader cannot take in at a glance is two."""
    counts = collections.Counter(
        path.parent for path in paths if path.suffix in SOURCES and path.parts[0] != "tests"
    )
    for folder, count in counts.items():
        if count > MAX_SOURCES:
            yield f"{folder}: {count} sources, at most {MAX_SOURCES}"


def problems_of(root):
    seen = {}
    files = list(files_of(root))
    arrows = arrows_of((root / "CMakeLists.txt").read_text())
    yield from folder_problems(path for path, _ in files)
    yield from type_problems(files)
    for path, text in files:
        yield from width_problems(path, text)
        if path.suffix not in CODE:
            continue
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield f"{path}: {lines} lines, at most {MAX_LINES}"
        if not any(
            "SPDX-License-Identifier: BSD-3-Clause" in line for line in text.splitlines()[:2]
        ):
            yield f"{path}: no SPDX line at the top"
        if path.parts[0] != "backends" and path.name != "__init__.py":
            if path.name in seen:
                yield f"{path}: the file name is also that of {seen[path.name]}"
            seen[path.name] = path
        if path.suffix in (".h", ".hpp", ".cpp", ".cu"):
            yield from include_problems(path, text, arrows)
            if path.parts[0] != "tests":
                yield from function_problems(path, text)
            yield from word_problems(path, text)
            yield from unordered_walks(path, text)
            yield from step_problems(path, text)
            yield from json_problems(path, text)
            if path.suffix in (".h", ".hpp") and "#pragma once" not in text:
                yield f"{path}: no #pragma once"


SPDX = "// SPDX-License-Identifier: BSD-3-Clause\n"
ARROWS = """reshard_part(base FOLDER core/base)
reshard_part(layout FOLDER core/layout LINKS base)
reshard_part(plan FOLDER core/plan
  LINKS layout PACKAGES fmt::fmt)
"""
BAD = {
    "core/plan/ad.cpp": SPDX + '#include "core/base/a.h"\n#include "core/bytes/ad.h"\n',
    "core/base/a.h": SPDX + '#pragma once\n#include "core/layout/b.h"\n',
    "core/planners/c.cpp": SPDX + '#include "sim/network/d.h"\n',
    "sim/store/e.cpp": SPDX + '#include "backends/cuda/f.h"\n',
    "backends/cuda/g.cpp": SPDX + '#include "sim/store/h.h"\n',
    "core/plan/i.cpp": SPDX + "#include <random>\nint seed() { return std::random_device{}(); }\n",
    "sim/network/j.cpp": SPDX + "auto now() { return std::chrono::steady_clock::now(); }\n",
    "core/plan/k.cpp": SPDX
    + "std::unordered_map<int, int> by_id;\n"
    + "int f() {\n  for (auto& x : by_id) return x.first;\n}\n",
    "core/plan/z.cpp": SPDX + "std::unordered_set<int> known_;\nint f = *known_.begin();\n",
    "core/plan/l.cpp": SPDX + "int f() {\n" + "  g();\n" * 80 + "}\n",
    "core/plan/m.cpp": SPDX + "//\n" * 500,
    "core/layout/m.cpp": SPDX,
    "core/layout/n.h": SPDX,
    "core/layout/v.hpp": SPDX,
    "core/layout/o.cpp": "int x;\n",
    "core/layout/p.cpp": SPDX + "// TODO: later\n",
    "sim/store/ab.cpp": SPDX + "auto j = nlohmann::json::parse(text);\n",
    "sim/store/ac.cpp": SPDX + "auto n = json.get<std::int64_t>();\n",
    "sim/store/u.cpp": SPDX + "bool c = std::holds_alternative<CopyStep>(step);\n",
    "sim/report/q.cpp": SPDX + "static int count = 0;\n",
    "core/plan/r.h": SPDX + "#pragma once\n//" + " wide" * 20 + "\n",
    "cmake/s.cmake": "set(x" + " wide" * 20 + ")\n",
    "core/layout/x.cpp": SPDX
    + "namespace reshard {\nstruct Twice {\n  int x;\n};\n}  // namespace reshard\n",
    "core/moves/y.cpp": SPDX + "namespace reshard {\nstruct Twice {};\n}  // namespace reshard\n",
    "traces/t.md": "```\n" + "shown " * 20 + "\n```\n" + "wide " * 21 + "\n",
}


BAD |= {f"backends/host/w{i}.cpp": SPDX for i in range(MAX_SOURCES + 1)}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**BAD, "CMakeLists.txt": ARROWS}.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = "\n".join(problems_of(pathlib.Path(folder)))
    missed = [name for name in BAD if name not in found and "/w" not in name]
    if "core/plan may not include core/base" in found or "core/bytes" not in found:
        missed.append("an arrow of CMakeLists.txt")
    if f"{MAX_SOURCES + 1} sources" not in found:
        missed.append("a folder of too many sources")
    if missed:
        sys.exit("tidy: the rules miss " + ", ".join(missed))
    print(f"tidy: all {len(BAD) - MAX_SOURCES} planted faults are found")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--self-test", action="store_true", help="check that every rule can fail")
    parser.add_argument("root", nargs="?", type=pathlib.Path, help="the tree (default: this one)",
                        default=pathlib.Path(__file__).resolve().parent.parent.parent)
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
        return 0
    found = list(problems_of(arguments.root))
    print("\n".join(found) if found else "tidy: nothing to say")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
