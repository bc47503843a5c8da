#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Python wheel, which needs only Python and the system's C library where it is installed,
# and tests it: what its library links with, the licenses of its contents, its size, and the package
# in a fresh virtual environment, outside this folder and without a network.
#
#   tools/wheel.sh [FOLDER]     FOLDER (default dist) gets reshard-VERSION-py3-none-PLATFORM.whl
#
# The wheel runs on every Python from 3.8 on, if the C library is at least as new as that of the
# machine that built it. The build tree is build/wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build.sh
print_help_and_leave "$@"
folder=${1:-dist}
most_bytes=10000000
# The C library's own libraries; the loader is named if something is thread-local.
allowed='libc\.so\.6|libm\.so\.6|ld-linux[-a-z0-9_]*\.so\.[0-9]'

fail() {
  echo "wheel: $*" >&2
  exit 1
}

build_wheel() {
  mkdir -p "$folder"
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  if ! PYTHONPATH=tools/python python3 -B -c \
    'import build_backend, sys; print(build_backend.build_wheel(sys.argv[1]))' "$folder" \
    2>&1 >"$work/name" | tee "$work/build.log" | show_steps wheel; then
    cat "$work/build.log" >&2
    fail "it was not built (see above)"
  fi
}

check_library() {
  python3 -m zipfile -e "$1" "$work/unpacked"
  local needed others
  needed=$(readelf --dynamic --wide "$work/unpacked/reshard/libreshard.so.0" |
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  [ -n "$needed" ] || fail "readelf found nothing that its library needs"
  others=$(grep -vxE "$allowed" <<<"$needed" | paste -sd ' ' || true)
  [ -z "$others" ] || fail "its library needs more than the C library: $others"
}

check_licenses() {
  local expected found
  expected=$(PYTHONPATH=tools/python python3 -B -c \
    'import build_backend; print(*sorted(f"{name}.txt" for name in build_backend.INSIDE))')
  found=$(cd "$work"/unpacked/*.dist-info/licenses && LC_ALL=C printf '%s\n' * | paste -sd ' ')
  [ "$found" = "$expected" ] || fail "expected the licenses of $expected, found $found"
}

check_size() {
  local bytes
  bytes=$(stat -c %s "$1")
  [ "$bytes" -le "$most_bytes" ] || fail "expected at most $most_bytes bytes, found $bytes"
  echo "wheel: $1, $bytes bytes"
}

check_installed() {
  python3 -m venv "$work/venv"
  local python=$work/venv/bin/python wheel
  wheel=$(realpath "$1")
  "$python" -m pip install --quiet --no-index --no-deps --disable-pip-version-check "$wheel"
  cd "$work"
  # Nothing in this shell's environment may help it find a library or a package.
  unset PYTHONPATH RESHARD_LIBRARY LD_LIBRARY_PATH
  "$python" -c '
import reshard
from reshard.adapters import dcp, megatron, mooncake, nixl
plan = reshard.plan((8192, 8192), "bf16", (2, 4), "S(0)R", "RS(1)")
assert plan.time_ps >= plan.bound_ps > 0, plan
print(f"wheel: {plan.planner} takes {plan.time_ps} ps, bound {plan.bound_ps} ps")'
  [ "$("$python" -m reshard --version)" = "$("$work/venv/bin/reshard" --version)" ] ||
    fail "python -m reshard and reshard differ in their version"
  echo "wheel: $("$python" -m reshard --version) in a fresh environment, by $("$python" --version)"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build_wheel
wheel=$folder/$(cat "$work/name")
check_library "$wheel"
check_licenses
check_size "$wheel"
check_installed "$wheel"
