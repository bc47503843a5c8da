#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Drawn jobs of 5 to 20 tensors on 2 to 8 real processes: `reshard validate --requests` compares
every bit with what the requests define, and the shards with those of one process.

Exits with 77 and the reason if MPI is not available.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

LIMIT_S = 120
FLOATS, INTEGERS = ["bf16", "f16", "f32", "f64"], ["i32", "i64", "u8"]
OTHERS = ["bool", "f8e4m3", "c64"]
ENVIRONMENT = {
    **os.environ,
    "RESHARD_MPI": "openmpi",  # the options of mpirun are Open MPI's
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "LC_ALL": "C.UTF-8",
}


def drawn_meshes(rng, world):
    """Header's meshes by name: some of the ranks, in any order, as an array of one or two axes."""
    meshes = {"all": {"mesh": str(world)}}
    while len(meshes) < 5:
        ranks = rng.sample(range(world), rng.randint(1, world))
        if rng.random() < 0.5:
            ranks.sort()
        rows = rng.choice([n for n in range(1, len(ranks) + 1) if len(ranks) % n == 0])
        shape = rng.choice([f"{rows}x{len(ranks) // rows}", str(len(ranks))])
        meshes[f"m{len(meshes)}"] = {"mesh": shape, "ranks": ",".join(map(str, ranks))}
    return meshes


def axes(mesh):
    return len(mesh["mesh"].split("x"))


def drawn_tensor(rng, meshes):
    shape = [0 if rng.random() < 0.02 else rng.randint(1, 17) for _ in range(rng.randint(1, 3))]
    shards = [f"S({dim})" for dim in range(len(shape))]
    dtype = rng.choice(FLOATS + INTEGERS + OTHERS)
    ops = ["sum", "max", "min"] if dtype in FLOATS + INTEGERS else []
    op = rng.choice(ops + ["avg"] * (dtype in FLOATS)) if ops else ""
    mesh, to_mesh = rng.choice(list(meshes)), rng.choice(list(meshes))
    kinds = ["R"] + shards
    source = [rng.choice(kinds + [f"P({op})"] * bool(op)) for _ in range(axes(meshes[mesh]))]
    target = [rng.choice(kinds) for _ in range(axes(meshes[to_mesh]))]
    if dtype in FLOATS and rng.random() < 0.1:  # everyone else gets zeros
        to_mesh, source, target = mesh, ["S(0)"] * len(source), ["P(sum)"] * len(source)
    return {"shape": shape, "dtype": dtype, "mesh": mesh, "to_mesh": to_mesh,
            "from": "".join(source), "to": "".join(target)}


def drawn_job(rng, world, path):
    meshes = drawn_meshes(rng, world)
    count, tensors = rng.randint(5, 20), []
    while len(tensors) < count:  # some several times, as in layers
        known = tensors and rng.random() < 0.3
        tensors.append(rng.choice(tensors) if known else drawn_tensor(rng, meshes))
    lines = [{"reshard_trace": 1, "meshes": meshes}, *tensors]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tensors


def planners_between_meshes(reshard, doctor):
    """The names of the planners that plan from one mesh to another."""
    asked = [str(reshard), "plan", "--mesh", "2", "--to-mesh", "3", "--shape", "4",
             "--dtype", "f32", "--from", "S(0)", "--to", "R", "--planner"]
    names = [planner["name"] for planner in doctor["planners"]]
    return [name for name in names
            if subprocess.run([*asked, name], env=ENVIRONMENT, capture_output=True).returncode == 0]


def report_of(words):
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT_S)
    said = re.findall(r"^reshard: (?!.* s so far).*", done.stderr, re.MULTILINE)  # no progress
    if done.returncode != 0 or said:
        return None, f"exit code {done.returncode}: {' '.join(said) or done.stderr}"
    return json.loads(done.stdout), ""


def faults(alone, together, world):
    """What differs between the reports of one process and of several."""
    values = [report["values"] for report in (alone, together)]
    if not all(value["hold"] for value in values):
        return "values do not hold"
    if together["backend"]["processes"] != world:
        return f"{together['backend']['processes']} processes"
    if values[0]["digest"] != values[1]["digest"] or values[0]["shards"] != values[1]["shards"]:
        return "other shards than on one process"
    if not together["values"]["store_ran"]:
        return "not compared with the store"
    return ""


def check(reshard, launcher, seed, world, planner, folder):
    rng = random.Random(seed)
    path = folder / f"{seed}.jsonl"
    tensors = drawn_job(rng, world, path)
    request = [str(reshard), "validate", "--requests", str(path), "--planner", planner, "--json",
               "--warmup", "0", "--iterations", "2"]
    alone, fault = report_of(request)
    if not fault:
        together, fault = report_of([*launcher, "-np", str(world), *request, "--backend", "mpi"])
    fault = fault or faults(alone, together, world)
    if fault:
        print(f"FAILED seed {seed}, {world} processes, {planner}: {fault}\n{path.read_text()}")
    return len(tensors), not fault


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reshard", default=built.RESHARD, type=pathlib.Path)
    parser.add_argument("--rounds", default=1, type=int, help="jobs per planner and world")
    parser.add_argument("--seed", default=1, type=int, help="of the first job")
    arguments = parser.parse_args()
    reshard = arguments.reshard.resolve()
    doctor = json.loads(subprocess.run([reshard, "doctor", "--json"], env=ENVIRONMENT,
                                       capture_output=True, text=True, check=True).stdout)
    mpi = next(backend for backend in doctor["backends"] if backend["name"] == "mpi")
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if not mpi["usable"] or mpirun is None:
        print(f"validate_jobs: skipped: {mpi['what']}; {mpi['how_to_get']}")
        return built.SKIPPED
    planners = planners_between_meshes(reshard, doctor)
    # Sanitizers make everything ten times slower.
    worlds = [3] if built.SANITIZE else range(2, 9)
    cases = [(world, planner) for _ in range(arguments.rounds) for world in worlds
             for planner in planners]
    with tempfile.TemporaryDirectory() as folder:
        done = [check(reshard, [mpirun, "--oversubscribe"], seed, world, planner,
                      pathlib.Path(folder))
                for seed, (world, planner) in enumerate(cases, arguments.seed)]
    failed = sum(not holds for _, holds in done)
    print(f"validate_jobs: {len(done)} jobs of {sum(count for count, _ in done)} tensors, "
          f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
