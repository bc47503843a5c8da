#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every script answers --help: exit code 0, some text, and nothing else done, not even a file
written.

script_helps.py [ROOT]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 20


def scripts_in(root):
    """What a person can run, and how: shell scripts that are executable, Python with a main. The
    modules of a package need its library, and their help is tested with what they do."""
    found = {}
    for folder in ("tools", "tests", "traces"):
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if path.suffix == ".sh" and os.access(path, os.X_OK):
                found[name] = [path]
            elif path.suffix != ".py" or (path.parent / "__init__.py").exists():
                continue
            elif '__name__ == "__main__"' in path.read_text():
                found[name] = [sys.executable, path]
    return found


def state_of(root):
    return {str(p): p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file()}


def fault_of(root, command):
    before = state_of(root)
    # Help needs nothing that was built: the libraries of a build with sanitizers do not load.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "RESHARD_LIBRARY": "/nowhere"}
    try:
        run = subprocess.run([*command, "--help"], cwd=root, capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                             env=environment)
    except subprocess.TimeoutExpired:
        return f"ran for {LIMIT_S} s"
    if run.returncode != 0:
        return f"exit {run.returncode}: {run.stderr.strip()[-200:]}"
    if len(run.stdout.split()) < 5:
        return f"printed {run.stdout!r}"
    if state_of(root) != before:
        return "files changed"
    return None


def main():
    if "--help" in sys.argv:
        print(__doc__)
        return 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    root = root if len(sys.argv) > 1 else root.parents[2]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy"
        # Without built trees: a script that built or installed something would be seen.
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("build", ".git", "corpus"))
        scripts = scripts_in(copy)
        faults = [(name, fault_of(copy, command)) for name, command in scripts.items()]
    for script, fault in faults:
        if fault:
            print(f"script_helps: {script} --help: {fault}")
    print(f"script_helps: {len(scripts)} scripts, {sum(1 for _, f in faults if f)} wrong")
    return 1 if not scripts or any(fault for _, fault in faults) else 0


if __name__ == "__main__":
    sys.exit(main())
