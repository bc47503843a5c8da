# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the other scripts in this folder.
#
#   print_help_and_leave "$@"        if --help or -h is given, prints the comment at the top of the
#                                    script and exits
#   build_preset release reshard     configures build/release unless that was done, then builds the
#                                    target `reshard` there (only what changed)

print_help_and_leave() {
  case "${1:-}" in
    -h | --help)
      sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
  esac
}

# Filters ctest's output: drops lines that only say that a test started or passed.
failures_and_totals() {
  if [ -t 1 ]; then
    cat
  else
    grep --line-buffered -vE -e '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*( Passed|\*\*\*Skipped) ' \
      -e '^ +Start +[0-9]+: |^(Internal ctest|Test project) '
  fi
}

# Shows ninja's "[12/574] ..." lines as one line that changes on a terminal, or one line a minute in
# a log.
show_steps() {
  local what=$1 line last=$SECONDS
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    if [ -t 1 ]; then
      printf '\rbuild: %s, %s of %s steps ' "$what" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
    elif [ $((SECONDS - last)) -ge 60 ]; then
      last=$SECONDS
      echo "build: $what, ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps"
    fi
  done
  if [ -t 1 ]; then printf '\r%60s\r' ''; fi
}

# Lets ccache hit across clones in different folders: paths below this folder are treated as
# relative.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# CPU time of the targets' objects that do not exist yet: a file takes about three seconds, a folder
# that is compiled as one file fifteen.
seconds_to_compile() {
  local tree=$1 object
  shift
  ninja -C "$tree" -t commands "$@" | sed -n 's/.* -o \([^ ]*\.o\) -c .*/\1/p' |
    while read -r object; do [ -e "$tree/$object" ] || echo "$object"; done |
    awk '{ sum += /\/Unity\// ? 15 : 3 } END { print sum + 0 }'
}

build_preset() {
  local preset=$1
  shift
  local tree=build/$preset log
  mkdir -p "$tree"
  log=$tree/last-build.log
  local started=$SECONDS
  if [ ! -f "$tree/build.ninja" ]; then
    echo "configure: $preset"
    # If ccache is installed, it speeds up building a fresh tree.
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
  local seconds
  seconds=$(seconds_to_compile "$tree" "$@")
  if [ "$seconds" -ge 60 ]; then
    echo "build: $preset, up to $((seconds / $(nproc) / 60 + 1)) min on $(nproc) cores"
  fi
  # If there is nothing to do, this takes a fraction of a second and prints nothing.
  if ! ninja -C "$tree" "$@" 2>&1 | tee "$log" | show_steps "$preset"; then
    cat "$log" >&2
    echo "build: $preset failed (see above)" >&2
    return 1
  fi
  if ! grep -q 'no work to do' "$log"; then
    echo "build: $preset ready after $((SECONDS - started)) s"
  fi
}
