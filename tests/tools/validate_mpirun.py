#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`reshard validate` on real processes: one report, one reason, the same exit code for all, and no
process left behind.

Exits with 77 and the reason if MPI is not available.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

LIMIT_S = 120
REQUEST = ["--mesh", "4", "--shape", "64,48", "--from", "S(0)", "--to", "S(1)"]
ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "LC_ALL": "C.UTF-8",
}


class Launcher:
    def __init__(self, reshard, mpirun):
        self.reshard, self.mpirun, self.failed = str(reshard), mpirun, 0

    def words(self, *groups):
        """mpirun's command line: (processes, arguments of validate) per group."""
        out = [self.mpirun, "--oversubscribe"]
        for i, (count, arguments) in enumerate(groups):
            program = [self.reshard, "validate", "--backend", "mpi"]
            out += [":"] * (i > 0) + ["-np", str(count), *program, *arguments]
        return out

    def run(self, *groups):
        done = subprocess.run(
            self.words(*groups), env=ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT_S
        )
        return (
            done.returncode,
            done.stdout,
            re.findall(r"^reshard: (?!.* s so far).*", done.stderr, re.MULTILINE),  # no progress
        )

    def expect(self, name, holds, seen):
        if holds:
            return
        self.failed += 1
        print(f"FAILED {name}: {seen}")


def alone(launcher, arguments):
    return json.loads(
        subprocess.run(
            [launcher.reshard, "validate", *arguments, "--json"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        ).stdout
    )


def right_values(launcher):
    requests = [
        [
            "--mesh",
            "2x2",
            "--shape",
            "9,7",
            "--dtype",
            dtype,
            "--from",
            source,
            "--to",
            target,
            "--planner",
            planner,
        ]
        for dtype, source, target in [
            ("bf16", "S(0)S(1)", "S(1)R"),
            ("f32", "P(sum)R", "S(0)R"),
            ("f64", "P(avg)P(avg)", "RR"),
        ]
        for planner in ("rule", "p2p")
    ]
    for request in [REQUEST, *requests]:
        expected = alone(launcher, request)
        for processes in (4, 6):
            code, out, errors = launcher.run((processes, [*request, "--iterations", "3", "--json"]))
            launcher.expect("right values", code == 0 and not errors, (request, code, errors))
            found = json.loads(out)  # printed by one process only
            launcher.expect(
                "backend",
                found["backend"]["name"] == "mpi" and found["backend"]["processes"] == processes,
                found["backend"],
            )
            launcher.expect(
                "values",
                found["values"]["hold"]
                and found["values"]["digest"] == expected["values"]["digest"],
                found["values"],
            )
            launcher.expect(
                "shards",
                found["values"]["shards"] == expected["values"]["shards"],
                found["values"]["shards"],
            )
            launcher.expect(
                "prediction",
                found["predicted_ps"] == expected["predicted_ps"],
                found["predicted_ps"],
            )
            launcher.expect(
                "times",
                all(
                    step["measured_ps"]["max"] <= found["measured_ps"]["max"]
                    for step in found["steps"]
                ),
                found["steps"],
            )


def files_are_whole(launcher, folder):
    measurements, timeline = folder / "m.jsonl", folder / "both.json"
    code, _, errors = launcher.run(
        (
            4,
            [
                *REQUEST,
                "--iterations",
                "2",
                "--measurements",
                str(measurements),
                "--perfetto",
                str(timeline),
            ],
        )
    )
    launcher.expect("files", code == 0 and not errors, (code, errors))
    lines = [json.loads(line) for line in measurements.read_text().splitlines()]
    parts = [line for line in lines if "kind" in line]
    spans = [line for line in lines if "start_ps" in line]
    launcher.expect(
        "measurements",
        len(spans) == 2 * len(parts) and {part["rank"] for part in parts} == {0, 1, 2, 3},
        lines,
    )
    names = {
        event["args"]["name"]
        for event in json.loads(timeline.read_text())["traceEvents"]
        if event["name"] == "process_name"
    }
    launcher.expect("timeline", {f"measured rank {rank}" for rank in range(4)} <= names, names)


def one_reason(launcher):
    unknown = "validate: expected no argument '--frobnicate' (--help lists the arguments)"
    cases = [
        (
            "wrong option",
            [(3, ["--frobnicate"])],
            2,
            [f"reshard: error: {unknown}"],
        ),
        (
            "wrong option of one",
            [(1, REQUEST), (1, ["--frobnicate"])],
            2,
            [f"reshard: error: rank 1: {unknown}"],
        ),
        (
            "missing option",
            [(3, ["--mesh", "2"])],
            2,
            ["reshard: error: --shape: required, or give --requests FILE or --plan FILE"],
        ),
        (
            "too few processes",
            [(2, REQUEST)],
            2,
            [
                "reshard: error: mpi: expected a process for rank 3, found 2 processes "
                "(mpirun -np 4 starts as many)"
            ],
        ),
        (
            "output that only the root writes",
            [(2, [*REQUEST[:1], "2", *REQUEST[2:], "--perfetto", "/nowhere/x"])],
            2,
            [
                "reshard: error: --perfetto: expected a file in a folder that exists, "
                "found '/nowhere/x'"
            ],
        ),
        (
            "a process with a trouble of its own",
            [(3, REQUEST), (1, ["--plan", "nowhere.plan"])],
            2,
            ["reshard: error: rank 3: nowhere.plan: expected a file, found none"],
        ),
        (
            "a full disk at the end",
            [(4, [*REQUEST, "--measurements", "/dev/full"])],
            4,
            ["reshard: error: system: write '/dev/full' failed: ENOSPC (No space left on device)"],
        ),
    ]
    for name, groups, code, errors in cases:
        found = launcher.run(*groups)
        launcher.expect(
            name,
            found == (code, "", errors)
            or (name.startswith("a full") and (found[0], found[2]) == (code, errors)),
            found,
        )
    code, out, errors = launcher.run((3, REQUEST), (1, [*REQUEST, "--planner", "rule"]))
    launcher.expect(
        "different plans",
        code == 2
        and out == ""
        and len(errors) == 1
        and "the plan: expected the same on all processes" in errors[0],
        errors,
    )
    for other in (["--iterations", "5"], ["--warmup", "0"], ["--declared-order"]):
        code, out, errors = launcher.run((3, REQUEST), (1, [*REQUEST, *other]))
        said = errors[0] if errors else ""
        known = "the runs: expected the same on all processes, found --iterations 9 --warmup 2 on "
        holds = known in said and " ".join(other) in said and "on rank 3" in said
        launcher.expect("other runs", holds and (code, out, len(errors)) == (2, "", 1), errors)


def says_how_to_get_it(reshard, folder):
    """What is missing for MPI, and what helps: the module, a launcher, a name that is none. Returns
    the number of failures."""
    alone_here, with_mpich = folder / "reshard", folder / "mpich" / "reshard"
    with_mpich.parent.mkdir()
    for program in (alone_here, with_mpich):
        shutil.copy(reshard, program)
    mpich_module = reshard.parent / "reshard_mpich.so"
    cases = [
        ("no module", alone_here, {}, False, "the package reshard-mpi"),
        ("no launcher", reshard, {"PATH": "/nowhere"}, False, "apt install openmpi-bin"),
        (
            "no launcher, yet launched",
            reshard,
            {"PATH": "/nowhere", "OMPI_COMM_WORLD_SIZE": "1"},
            True,
            "",
        ),
        (
            "a name that is none",
            reshard,
            {"RESHARD_MPI": "lam"},
            False,
            "RESHARD_MPI=openmpi or RESHARD_MPI=mpich",
        ),
    ]
    if mpich_module.exists():
        shutil.copy(mpich_module, with_mpich.parent)
        cases.append(("the only module that is here", with_mpich, {"PMI_SIZE": ""}, True, ""))
    failed = 0
    for name, program, variables, usable, how in cases:
        doctor = json.loads(
            subprocess.run(
                [program, "doctor", "--json"],
                env={**ENVIRONMENT, **variables},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        found = next(backend for backend in doctor["backends"] if backend["name"] == "mpi")
        if (
            found["usable"] != usable
            or how not in found["how_to_get"]
            or (usable and found["how_to_get"])
        ):
            failed += 1
            print(f"FAILED {name}: {found}")
    return failed


def processes_of(parent):
    """Direct children of a process that run `reshard`."""
    out = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == parent and b"validate" in (path / "cmdline").read_bytes():
                out.append(int(path.name))
        except (OSError, IndexError):
            pass
    return sorted(out)


def a_rank_that_stops(launcher):
    """One process is stopped while all run: the others wait no longer than they may, say why, and
    end everything."""
    with subprocess.Popen(
        launcher.words(
            (
                3,
                [
                    "--mesh",
                    "3",
                    "--shape",
                    "512,384",
                    "--from",
                    "S(0)",
                    "--to",
                    "S(1)",
                    "--iterations",
                    "100000",
                    "--time-limit",
                    "3",
                ],
            )
        ),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        children = []
        started = time.monotonic()
        while len(children) < 3 and time.monotonic() - started < 20:
            time.sleep(0.1)
            children = processes_of(running.pid)
        time.sleep(2)
        os.kill(children[-1], signal.SIGSTOP)
        stopped = time.monotonic()
        try:
            out, errors = running.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
        finally:
            for child in processes_of(running.pid):
                os.kill(child, signal.SIGKILL)
    said = [line for line in errors.splitlines() if line.startswith("reshard: error: rank ")]
    launcher.expect(
        "a rank that stops",
        running.returncode == 4 and out == "" and said,
        (running.returncode, out, errors),
    )
    launcher.expect("within its limit", time.monotonic() - stopped < 30, time.monotonic() - stopped)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    reshard = parser.parse_args().reshard.resolve()
    # The options of mpirun are Open MPI's.
    doctor = json.loads(
        subprocess.run(
            [reshard, "doctor", "--json"],
            env={**ENVIRONMENT, "RESHARD_MPI": "openmpi"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    mpi = next(backend for backend in doctor["backends"] if backend["name"] == "mpi")
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if not mpi["usable"] or mpirun is None:
        print(
            f"validate_mpirun: skipped: "
            f"{mpi['what'] if not mpi['usable'] else 'no mpirun in PATH'}; {mpi['how_to_get']}"
        )
        return 77
    launcher = Launcher(reshard, mpirun)
    right_values(launcher)
    with tempfile.TemporaryDirectory() as folder:
        files_are_whole(launcher, pathlib.Path(folder))
        launcher.failed += says_how_to_get_it(reshard, pathlib.Path(folder))
    one_reason(launcher)
    a_rank_that_stops(launcher)
    print(
        f"validate_mpirun: {launcher.failed} failed"
        if launcher.failed
        else "validate_mpirun: everything as expected"
    )
    return 1 if launcher.failed else 0


if __name__ == "__main__":
    sys.exit(main())
