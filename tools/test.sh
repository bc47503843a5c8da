#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All tests in one command: installs what is missing, builds a release with its tests, and runs
# them. Arguments are passed to ctest (such as -R layout).
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build.sh
print_help_and_leave "$@"

tools/bootstrap.sh
build_preset release all
# On a terminal, shows ctest's single changing line; in a file, failures and totals, with the rest
# in build/release/Testing.
status=0
ctest --test-dir build/release -j2 --output-on-failure --no-tests=error --progress "$@" |
  failures_and_totals || status=$?
# Lists what was skipped because this machine lacks something.
sed -n 's/^skipped: /test: skipped, /p' build/release/Testing/Temporary/LastTest.log |
  sort | uniq -c | sed 's/^ *\([0-9]*\) test: /test: \1 /'
exit "$status"
