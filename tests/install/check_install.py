#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An installed tree works wherever it is moved: the program runs, and C and C++ programs are built
against it by CMake and by pkg-config, and run.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

MPICC, MPIEXEC = built.cached("RESHARD_MPICC_mpi"), built.cached("RESHARD_MPIRUN_mpi")

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer C CXX)
find_package(reshard 0.1 REQUIRED)
find_package(Catch2 REQUIRED)
add_executable(rows_to_columns rows_to_columns.cpp)
target_compile_features(rows_to_columns PRIVATE cxx_std_17)
target_link_libraries(rows_to_columns PRIVATE reshard::reshard Catch2::Catch2WithMain)
foreach(program plan_and_run plan)
  add_executable(${program} ${program}.c)
  target_link_libraries(${program} PRIVATE reshard::reshard)
endforeach()
find_package(reshard 0.2 QUIET)
if(reshard_FOUND)
  message(FATAL_ERROR "version 0.2 was asked for and ${reshard_VERSION} was taken")
endif()
"""

MPI_PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer C)
find_package(reshard 0.1 REQUIRED COMPONENTS mpi)
add_executable(run_on_mpi run_on_mpi.c)
target_link_libraries(run_on_mpi PRIVATE reshard::reshard_mpi)
"""
MISSING_PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer C)
find_package(reshard 0.1 REQUIRED COMPONENTS gpudirect)
"""
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(*command, **more):
    environment = {**os.environ, **more.pop("environment", {})}
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        **more,
    )
    if done.returncode != 0:
        sys.exit(
            f"install: {' '.join(str(c) for c in command)} ended with {done.returncode}\n"
            f"{done.stdout}{done.stderr}"
        )
    return done.stdout


def expect(holds, what):
    if not holds:
        sys.exit(f"install: expected {what}")


def files_under(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


def check_files(prefix):
    found = files_under(prefix)
    for wanted in (
        "bin/reshard",
        "include/reshard/reshard.h",
        "include/reshard/reshard.hpp",
        "include/reshard/reshard_rings.h",
        "include/reshard/reshard_base.hpp",
        "include/reshard/reshard_buffers.h",
        "include/reshard/reshard_program.h",
        "include/reshard/reshard_buffers.hpp",
        "include/reshard/reshard_program.hpp",
        "share/man/man1/reshard.1",
        "share/bash-completion/completions/reshard",
        "share/reshard/topologies/dgx-h100.topo",
        "share/reshard/traces/mlp-tp.jsonl",
        "share/doc/reshard/README.md",
        "share/doc/reshard/LICENSE",
        "share/doc/reshard/CHANGELOG.md",
        "share/doc/reshard/plan-format.md",
        "share/doc/reshard/trace-format.md",
        "share/doc/reshard/topology-format.md",
        "share/doc/reshard/json-schemas.md",
    ):
        expect(wanted in found, f"{wanted} among\n" + "\n".join(found))
    for wanted in (
        r"lib.*/libreshard\.so\.0",
        r"lib.*/libreshard\.so",
        r"lib.*/cmake/reshard/reshardConfig\.cmake",
        r"lib.*/pkgconfig/reshard\.pc",
    ):
        expect(
            any(re.fullmatch(wanted, name) for name in found),
            f"{wanted} among\n" + "\n".join(found),
        )
    for name in found:
        expect(not name.endswith((".a", ".cpp", ".o")), f"no {name}")
        # Nothing that is read as text may know where it was built or first installed.
        if name.endswith((".cmake", ".pc", ".md", ".1")):
            expect(
                str(prefix) not in (prefix / name).read_text()
                and str(built.ROOT) not in (prefix / name).read_text(),
                f"{name} to name no folder of this machine",
            )


def readme_program(name):
    page = (built.ROOT / "tools" / "capi" / "README.md").read_text()
    return next(
        code
        for code in re.findall(r"```c(?:pp)?\n(.*?)```", page, re.DOTALL)
        if code.startswith((f"/* {name}", f"// {name}"))
    )


def check_mpi_library(prefix, work):
    work.mkdir()
    shutil.copy(built.ROOT / "tests/capi/programs/run_on_mpi.c", work)
    (work / "CMakeLists.txt").write_text(MPI_PROJECT)
    run(
        built.CMAKE,
        "-S",
        work,
        "-B",
        work / "build",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={MPICC}",
    )
    run(built.CMAKE, "--build", work / "build")
    out = run(
        MPIEXEC,
        "--oversubscribe",
        "-np",
        "4",
        work / "build" / "run_on_mpi",
        environment=AS_ROOT,
    )
    expect("all as expected" in out, "run_on_mpi to say that all is as expected")
    print("install: a C program on the library for MPI runs on 4 processes")


def check_missing_component(prefix, work):
    work.mkdir()
    (work / "CMakeLists.txt").write_text(MISSING_PROJECT)
    done = subprocess.run(
        [built.CMAKE, "-S", work, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = " ".join(done.stderr.split())
    expect(
        done.returncode != 0 and "reshard has no component gpudirect" in said,
        f"find_package to say which component is missing, found {said}",
    )


def check_consumers(prefix, work):
    work.mkdir()
    shutil.copy(built.ROOT / "tests/capi/programs/plan_and_run.c", work)
    (work / "plan.c").write_text(readme_program("plan.c"))
    (work / "rows_to_columns.cpp").write_text(readme_program("rows_to_columns.cpp"))
    (work / "CMakeLists.txt").write_text(PROJECT)
    run(
        built.CMAKE,
        "-S",
        work,
        "-B",
        work / "build",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release",
    )
    run(built.CMAKE, "--build", work / "build")
    expect(
        "all as expected" in run(work / "build" / "plan_and_run"),
        "plan_and_run to say that all is as expected",
    )
    expect("steps by" in run(work / "build" / "plan"), "plan.c to print a plan")
    expect(
        "All tests passed" in run(work / "build" / "rows_to_columns"),
        "rows_to_columns.cpp to pass",
    )
    check_missing_component(prefix, work / "missing")
    print("install: C and C++ programs by find_package run")

    if shutil.which("pkg-config") is None:
        print("install: pkg-config is not there (apt install pkg-config): not tried")
        return
    folders = {"PKG_CONFIG_PATH": str(next(prefix.glob("lib*/**/pkgconfig")))}
    flags = run("pkg-config", "--cflags", "--libs", "reshard", environment=folders).split()
    expect(
        run("pkg-config", "--modversion", "reshard", environment=folders).strip() == "0.1.0",
        "pkg-config to know the version",
    )
    library = {"LD_LIBRARY_PATH": str(next(prefix.glob("lib*/**/libreshard.so")).parent)}
    run(
        "cc",
        "-std=c99",
        "-pedantic",
        "-Wall",
        "-Werror",
        work / "plan_and_run.c",
        "-o",
        work / "by_pkg_config",
        *flags,
    )
    expect(
        "all as expected" in run(work / "by_pkg_config", environment=library),
        "plan_and_run by pkg-config to say that all is as expected",
    )
    print("install: a C program by pkg-config runs")

    for page in next(prefix.glob("lib*/**/pkgconfig")).glob("reshard_*.pc"):
        found = run("pkg-config", "--libs", page.stem, environment=folders).split()
        expect({f"-l{page.stem}", "-lreshard"} <= set(found), f"{page.name} to name its libraries")
    if MPICC and MPIEXEC:
        check_mpi_library(prefix, work / "on_mpi")
        (work / "run.c").write_text(readme_program("run.c"))
        run(MPICC, "-std=c99", "-Wall", work / "run.c", "-o", work / "run", *flags)
        out = run(
            MPIEXEC,
            "--oversubscribe",
            "-np",
            "4",
            work / "run",
            environment={**library, **AS_ROOT},
        )
        expect("rows became columns" in out, "run.c under mpirun to say that rows became columns")
        print("install: the page's MPI program runs on 4 processes")


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    if built.SANITIZE:
        print("skipped: a library with sanitizers is not for others to link")
        return built.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        run(built.CMAKE, "--install", built.BUILD, "--prefix", base / "first")
        check_files(base / "first")
        run(
            built.CMAKE,
            "--install",
            built.BUILD,
            environment={"DESTDIR": str(base / "staged")},
        )
        expect(
            sorted(pathlib.Path(f).name for f in files_under(base / "staged"))
            == sorted(pathlib.Path(f).name for f in files_under(base / "first")),
            "the same files with DESTDIR as with --prefix",
        )
        moved = base / "elsewhere" / "reshard"
        moved.parent.mkdir()
        (base / "first").rename(moved)
        expect(
            run(moved / "bin" / "reshard", "--version") == "reshard 0.1.0\n",
            "the moved program to say its version",
        )
        check_consumers(moved, base / "consumer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
