# SPDX-License-Identifier: BSD-3-Clause
"""Builds the wheel (PEP 517) with CMake and the standard library, so that nothing is downloaded:
the package in this folder and libreshard.so.0, which work with every Python 3."""

import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "tools" / "python" / "reshard"
BUILD = ROOT / "build" / "wheel"
# The Debian packages with code that is compiled or linked into the library.
INSIDE = (
    "libcli11-dev",
    "libeigen3-dev",
    "libfmt-dev",
    "libpugixml-dev",
    "libstdc++6",
    "libxxhash-dev",
    "zlib1g-dev",
    "nlohmann-json3-dev",
)
_WHEEL = "Wheel-Version: 1.0\nGenerator: reshard\nRoot-Is-Purelib: false\n"
_ENTRY_POINTS = """[console_scripts]
reshard = reshard._program:main

[pytest11]
reshard = reshard.pytest_plugin
"""
TAG = "py3-none-linux_" + os.uname().machine


def _project():
    """The strings of [project], read without tomllib, which not every supported Python has."""
    fields = {}
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[project]")[1]
    for line in lines.splitlines():
        name, equals, value = line.partition(" = ")
        if equals and value.startswith('"'):
            fields[name] = value.strip('"')
    return fields


def _metadata():
    project = _project()
    lines = {
        "Metadata-Version": "2.1",
        "Name": project["name"],
        "Version": project["version"],
        "Summary": project["description"],
        "Requires-Python": project["requires-python"],
        "License": "BSD-3-Clause",
        "Description-Content-Type": "text/markdown",
    }
    head = "".join(f"{name}: {value}\n" for name, value in lines.items())
    return head + "\n" + (ROOT / "README.md").read_text(encoding="utf-8")


def _library():
    """libreshard.so.0, built without anything that only programs and tests need, so that it depends
    on no package."""
    options = ["BUILD_TESTS", "BUILD_BENCH", "INSTALL", "MPI", "CUDA", "NCCL"]
    # If ccache is installed, it speeds up the next build.
    ccache = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        + [f"-DRESHARD_{option}=OFF" for option in options]
        + ["-DRESHARD_STANDALONE=ON"]
        + ccache,
        check=True,
        stdout=sys.stderr,
    )
    subprocess.run(
        ["cmake", "--build", str(BUILD), "--target", "reshard_shared"],
        check=True,
        stdout=sys.stderr,
    )
    library = BUILD / "stripped" / "libreshard.so.0"
    library.parent.mkdir(exist_ok=True)
    subprocess.run(["strip", "-o", str(library), str(BUILD / "libreshard.so.0")], check=True)
    return library


def _licenses():
    """(name, bytes) of the licenses of the contents, which must go with it, as far as this system
    has them."""
    found = [(name, pathlib.Path("/usr/share/doc", name, "copyright")) for name in INSIDE]
    return [(f"licenses/{name}.txt", path.read_bytes()) for name, path in found if path.is_file()]


def _stem():
    project = _project()
    return f"{project['name']}-{project['version']}"


def _info():
    """(name, bytes) of the files that every wheel has in its .dist-info."""
    return [
        ("METADATA", _metadata().encode()),
        ("WHEEL", f"{_WHEEL}Tag: {TAG}\n".encode()),
        ("entry_points.txt", _ENTRY_POINTS.encode()),
        ("LICENSE", (ROOT / "LICENSE").read_bytes()),
    ]


def _write(wheel_directory, files, licenses=()):
    """Writes a wheel of `files`, (name, bytes, mode), and of the files that every wheel has. All
    entries have the same date, so that equal contents make equal wheels."""
    stem = _stem()
    info = stem + ".dist-info/"
    files = list(files) + [(info + name, content, 0o644) for name, content in [*_info(), *licenses]]
    record = ""
    for name, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files.append((info + "RECORD", (record + info + "RECORD,,\n").encode(), 0o644))
    wheel = f"{stem}-{TAG}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w") as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = mode << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without this, pip would build the library just to learn the package's name."""
    folder = pathlib.Path(metadata_directory) / (_stem() + ".dist-info")
    folder.mkdir()
    for name, content in _info():
        (folder / name).write_bytes(content)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = [
        (str(path.relative_to(PACKAGE.parent)), path.read_bytes(), 0o644)
        for path in sorted(PACKAGE.rglob("*"))
        if path.suffix == ".py" or path.name == "py.typed"
    ]
    files.append(("reshard/libreshard.so.0", _library().read_bytes(), 0o755))
    return _write(wheel_directory, files, _licenses())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Refers to the package in the source tree; builds the library, which stays in build/wheel."""
    _library()
    return _write(wheel_directory, [("reshard.pth", f"{PACKAGE.parent}\n".encode(), 0o644)])


def build_sdist(sdist_directory, config_settings=None):
    name = f"reshard-{_project()['version']}"
    path = pathlib.Path(sdist_directory) / (name + ".tar.gz")
    subprocess.run(
        ["git", "archive", "--prefix", name + "/", "-o", str(path), "HEAD"], check=True, cwd=ROOT
    )
    return path.name
