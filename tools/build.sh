# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the scripts beside it: configure a preset once, then build only what changed.
#
#   build_preset release reshard     configures build/release where that was not done, builds target
#                                    `reshard` there

build_preset() {
  local preset=$1
  shift
  local tree=build/$preset log
  mkdir -p "$tree"
  log=$tree/last-build.log
  local started=$SECONDS
  if [ ! -f "$tree/build.ninja" ]; then
    echo "configure: $preset"
    # ccache, where it is installed, makes a fresh tree cheap.
    local launcher=()
    if command -v ccache >/dev/null; then
      launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
    if ! cmake --preset "$preset" "${launcher[@]}" >"$log" 2>&1; then
      cat "$log" >&2
      echo "configure: $preset failed (see above)" >&2
      return 1
    fi
    grep '^-- reshard' "$log" || true
  fi
  # With nothing to do this takes a fraction of a second and prints nothing.
  if ! ninja -C "$tree" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    echo "build: $preset failed (see above)" >&2
    return 1
  fi
  if ! grep -q 'no work to do' "$log"; then
    echo "build: $preset ready after $((SECONDS - started)) s"
  fi
}
