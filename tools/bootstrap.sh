#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that reshard is built from, and lists them. Does nothing if all are
# installed.
#
#   tools/bootstrap.sh            what building and testing needs
#   tools/bootstrap.sh --check    also what tools/check.sh needs (Clang and its tools, MPICH)
#   tools/bootstrap.sh --list     prints the commands that root must run, without running them
#
# Works as root without sudo, on a minimal Debian 12, and never asks a question.
set -euo pipefail

list=
packages=(g++ cmake ninja-build python3 catch2 libcli11-dev libeigen3-dev nlohmann-json3-dev
  libfmt-dev libxxhash-dev libpugixml-dev zlib1g-dev libbenchmark-dev pkg-config dpkg-dev file
  libthrust-dev libopenmpi-dev openmpi-bin libsimgrid-dev)
case "${1:-}" in
  "") ;;
  --check) packages+=(clang clang-format libclang-rt-14-dev libmpich-dev mpich) ;;
  --list) list=yes ;;
  -h | --help)
    sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  *)
    echo "usage: tools/bootstrap.sh [--check|--list]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "bootstrap: this is not a Debian system; install the equivalents of: ${packages[*]}" >&2
  exit 1
fi

# One query for all; a package counts only if it is fully installed.
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/ installed$//p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
for_root="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
if [ -n "$list" ]; then
  echo "$for_root"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "bootstrap: not root and no sudo; as root, run: $for_root" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "bootstrap: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o Dpkg::Use-Pty=0 "$@"
}
# An image's package lists may be missing or old, so they are fetched, but only if something must be
# installed.
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  # Without a network, apt repeats the same error for every package and mirror.
  grep -m 2 '^[EW]:' "$log" | cut -c1-200 >&2 || tail -2 "$log" >&2
  trap - EXIT
  echo "bootstrap: apt failed; is there a network? Full output: $log" >&2
  exit 1
fi
echo "bootstrap: done"
