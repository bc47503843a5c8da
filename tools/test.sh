#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All tests on one command: installs what is missing, builds a release with its tests, runs them.
# Further arguments go to ctest (such as -R layout).
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build.sh
print_help_and_leave "$@"

tools/bootstrap.sh
build_preset release all
# On a terminal ctest's one line that changes; into a file failures and totals, the rest is kept in
# build/release/Testing.
status=0
ctest --test-dir build/release -j2 --output-on-failure --no-tests=error --progress "$@" |
  failures_and_totals || status=$?
# What a machine lacks is said, not passed over in silence.
sed -n 's/^skipped: /test: skipped, /p' build/release/Testing/Temporary/LastTest.log |
  sort | uniq -c | sed 's/^ *\([0-9]*\) test: /test: \1 /'
exit "$status"
