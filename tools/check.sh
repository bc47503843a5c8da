#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a reviewer runs in addition to the tests. Runs all stages, or those named:
#
#   format     clang-format has nothing to change
#   tidy       the source rules: include edges, sizes, names, what core and sim must not touch
#   sanitize   the tests under ASan and UBSan
#   digests    a build by Clang prints what is pinned, as GCC's build does in the tests
#   fuzz       every text input, RESHARD_FUZZ_RUNS inputs each (default 100000), under libFuzzer,
#              ASan and UBSan
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build.sh
print_help_and_leave "$@"
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1

stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(format tidy sanitize digests fuzz)
mapfile -t fuzz_targets < <(basename -as .cpp tests/fuzz/fuzz_*.cpp | sed s/fuzz_//)

format() {
  # Some of the folders may be missing, and git too.
  local folders
  folders=$(ls -d core sim backends tools tests 2>/dev/null || true)
  # shellcheck disable=SC2086
  find $folders -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp' -o -name '*.cu' |
    LC_ALL=C sort | xargs clang-format --dry-run -Werror
}

tidy() {
  python3 tests/tidy/tidy.py --self-test
  python3 tests/tidy/tidy.py
}

digests() {
  build_preset sanitize reshard
  python3 tests/outputs/check_outputs.py --reshard build/sanitize/reshard --every 8
}

# The golden runs have a separate command, without those that limit the address space: ASan reserves
# terabytes of it. The sweeps over all small cases are left to the release build: they run the same
# code as the random sweeps and take ten minutes more.
sanitize() {
  build_preset sanitize all
  ctest --test-dir build/sanitize -j2 --output-on-failure --no-tests=error --progress \
    --timeout 600 -E '^(golden|readme)$|sweep: [12]-d' | failures_and_totals
  python3 tests/golden/run.py --reshard build/sanitize/reshard --without bad_long_lines \
    --without out_of_memory
}

fuzz() {
  build_preset sanitize "${fuzz_targets[@]/#/fuzz_}"
  local target found
  for target in "${fuzz_targets[@]}"; do
    found=build/fuzz-corpus/$target
    mkdir -p "$found"
    if ! build/sanitize/fuzz_"$target" -runs="${RESHARD_FUZZ_RUNS:-100000}" -timeout=10 \
      -rss_limit_mb=2048 -max_len=4096 -artifact_prefix="$found/" -print_final_stats=1 \
      "$found" tests/fuzz/corpus/"$target" >"$found.log" 2>&1; then
      tail -50 "$found.log" >&2
      echo "fuzz: $target failed; the input is under $found" >&2
      return 1
    fi
    echo "fuzz: $target, $(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log") inputs"
  done
}

tools/bootstrap.sh --check
for stage in "${stages[@]}"; do
  case "$stage" in
    format | tidy | digests | sanitize | fuzz) ;;
    *)
      echo "usage: tools/check.sh [format|tidy|digests|sanitize|fuzz]..." >&2
      exit 2
      ;;
  esac
  started=$SECONDS
  echo "check: $stage"
  "$stage"
  echo "check: $stage passed in $((SECONDS - started)) s"
done
echo "check: ${#stages[@]} stages passed, 0 failed"
