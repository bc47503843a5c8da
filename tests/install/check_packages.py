#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages and the archive: their contents, that the same tree gives the same bytes, and
that the program runs from where it is unpacked.

check_packages.py --build BUILD [--cpack cpack] [--sanitize address]
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

CPACK = built.cached("CMAKE_CPACK_COMMAND")

CONTENTS = {
    "reshard": [
        "./usr/bin/reshard",
        "./usr/share/man/man1/reshard.1.gz",
        "./usr/share/reshard/topologies/dgx-h100.topo",
        "./usr/share/doc/reshard/copyright",
        "./usr/share/doc/reshard/changelog.gz",
        "./usr/share/bash-completion/completions/reshard",
        "./usr/share/doc/reshard/measurements-format.md",
    ],
    "libreshard0": ["/libreshard.so.0", "./usr/share/doc/libreshard0/copyright"],
    "libreshard-dev": [
        "./usr/include/reshard/reshard.h",
        "./usr/include/reshard/reshard_buffers.h",
        "./usr/include/reshard/reshard_program.h",
        "./usr/include/reshard/reshard_rings.h",
        "./usr/include/reshard/reshard.hpp",
        "/libreshard.so",
        "/reshardConfig.cmake",
        "/reshard.pc",
    ],
    "reshard-mpi": ["./usr/lib/reshard/reshard_mpi"],
    "libreshard-mpi0": ["/libreshard_mpi"],
    "libreshard-nccl0": ["/libreshard_nccl.so.0"],
    "libreshard-nccl-dev": [
        "./usr/include/reshard/reshard_nccl.h",
        "/libreshard_nccl.so",
        "/reshard-nccl-targets.cmake",
    ],
    "libreshard-mpi-dev": ["./usr/include/reshard/reshard_mpi.h", "/reshard-mpi-targets.cmake"],
}
# CPack writes scripts that call ldconfig into every package with a library, beside the trigger that
# ours has; they do no harm.
TOLERATED = ("maintscript-calls-ldconfig",)


def run(*command, **more):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
        **more,
    )
    if done.returncode != 0:
        sys.exit(
            f"packages: {' '.join(str(c) for c in command)} ended with {done.returncode}\n"
            f"{done.stdout}{done.stderr}"
        )
    return done.stdout


def expect(holds, what):
    if not holds:
        sys.exit(f"packages: expected {what}")


def packed(generator, folder):
    run(
        CPACK,
        "--config",
        built.BUILD / "CPackConfig.cmake",
        "-G",
        generator,
        "-B",
        folder,
        cwd=built.BUILD,
    )
    return {p.name: p for p in folder.iterdir() if p.name.endswith((".deb", ".tar.gz"))}


def digests(files):
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(files.items())
    }


def check_fields(debs, names):
    for package, path in debs.items():
        field = lambda name: run("dpkg-deb", "-f", path, name).strip()
        expect(
            field("Version") == "0.1.0" and field("Package") == package,
            f"{path.name} to be {package} 0.1.0",
        )
        expect(
            "@" in field("Maintainer") and field("Description"),
            f"{path.name} to have a maintainer and a description",
        )
    for package in ("reshard", "libreshard0"):
        for library in ("libc6", "libfmt9"):
            expect(
                library in run("dpkg-deb", "-f", debs[package], "Depends"),
                f"{package} to depend on {library}",
            )
    expect(
        "reshard-mpi" not in debs
        or "openmpi-bin" in run("dpkg-deb", "-f", debs["reshard-mpi"], "Recommends"),
        "reshard-mpi to recommend a launcher",
    )
    expect(
        "libreshard0 (= 0.1.0)" in run("dpkg-deb", "-f", debs["libreshard-dev"], "Depends"),
        "libreshard-dev to depend on its library",
    )
    for package, wanted in CONTENTS.items():
        if package not in debs:
            continue
        listed = run("dpkg-deb", "-c", debs[package])
        for name in wanted:
            expect(name in listed, f"{name} in {package}, found\n{listed}")
    expect(
        {"reshard", "libreshard0", "libreshard-dev"} <= set(debs),
        f"at least three packages, found {names}",
    )


def check_run(debs, base):
    for package in ("reshard", "libreshard0"):
        run("dpkg-deb", "-x", debs[package], base)
    program = base / "usr" / "bin" / "reshard"
    expect(
        run(program, "--version") == "reshard 0.1.0\n", "the unpacked program to say its version"
    )
    expect(
        "proof"
        in run(
            program, "plan", "--mesh", "4", "--shape", "64,64", "--from", "S(0)", "--to", "S(1)"
        ),
        "the unpacked program to plan",
    )


def check_refusal(folder):
    """Without dpkg-shlibdeps no package at all: one without dependencies would not start."""
    tools = folder / "bin"
    tools.mkdir(parents=True)
    for name in ("gzip", "dpkg", "dpkg-deb", "sh", "strip", "cmake"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    done = subprocess.run(
        [CPACK, "--config", built.BUILD / "CPackConfig.cmake", "-G", "DEB", "-B",
         folder / "out", "-D", "CMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"],
        cwd=built.BUILD,
        env={**os.environ, "PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=240,
    )  # fmt: skip
    expect(
        done.returncode != 0 and "apt install dpkg-dev" in done.stdout + done.stderr,
        f"cpack to refuse without dpkg-shlibdeps, found {done.returncode}: {done.stderr}",
    )
    expect(not list(folder.glob("out/*.deb")), "no package without dpkg-shlibdeps")


def check_lintian(debs):
    if shutil.which("lintian") is None:
        print("packages: lintian is not there: not tried")
        return
    # As root lintian warns about itself; it is asked for no more than errors and warnings.
    done = subprocess.run(
        ["lintian", "--allow-root", "--no-cfg", *map(str, debs.values())],
        capture_output=True,
        text=True,
        timeout=240,
    )
    found = [
        line
        for line in done.stdout.splitlines()
        if line[:2] in ("E:", "W:") and not any(tag in line for tag in TOLERATED)
    ]
    expect(not found, "lintian to find nothing, found\n" + "\n".join(found))
    print("packages: lintian has nothing to say")


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    if built.SANITIZE:
        print("skipped: programs with sanitizers are not packed")
        return built.SKIPPED
    if shutil.which("dpkg-deb") is None:
        print("skipped: no dpkg-deb, which makes and reads Debian packages")
        return built.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        first = packed("DEB", base / "first")
        debs = {name.split("_")[0]: path for name, path in first.items()}
        check_fields(debs, sorted(first))
        check_run(debs, base / "unpacked")
        check_lintian(debs)
        check_refusal(base / "refused")
        again = digests(packed("DEB", base / "second"))
        differing = [name for name, digest in digests(first).items() if again.get(name) != digest]
        expect(
            not differing,
            "the same packages again with the same SOURCE_DATE_EPOCH, found others for "
            + ", ".join(differing),
        )
        (archive,) = packed("TGZ", base / "archive").values()
        with tarfile.open(archive) as tar:
            names = tar.getnames()
        for wanted in ("bin/reshard", "include/reshard/reshard.h", "share/doc/reshard/LICENSE"):
            expect(
                any(name.endswith("/" + wanted) for name in names), f"{wanted} in {archive.name}"
            )
    print(f"packages: {', '.join(sorted(first))} and {archive.name} as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
