#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The checks that need a GPU: builds, then runs the tests of the CUDA and NCCL backends, validates
# plans on them, and compares the speed of the CUDA backend with the GPU's own copy. Reports
# everything that cannot run here, with the reason. NCCL 2.30 or newer
# (RESHARD_NCCL_LIBRARY=/path/to/libnccl.so.2) lets several ranks share a GPU.
#
#   tools/gpu.sh [--built] [FOLDER]     FOLDER (default gpu-results) gets timelines and measurements
#
# --built uses build/release as it is, for a GPU machine without the packages to build. The
# libraries that Debian's programs need (libfmt.so.9 and others) are then found through
# LD_LIBRARY_PATH. RESHARD_GPU_SECONDS (default 600) is the time limit of each run.
set -uo pipefail
cd "$(dirname "$0")/.."
source tools/build.sh
print_help_and_leave "$@"
built=
if [ "${1:-}" = --built ]; then
  built=yes
  shift
fi
results=${1:-gpu-results}

if [ -z "$built" ]; then
  tools/bootstrap.sh || exit
  build_preset release all || exit
fi
mkdir -p "$results"
reshard=build/release/reshard
failed=()

# attempt NAME COMMAND...: exit code 0 means passed, 77 skipped, anything else failed.
attempt() {
  local name=$1 code=0 started=$SECONDS
  shift
  echo "gpu: $name: $*"
  timeout "${RESHARD_GPU_SECONDS:-600}" "$@" 2>&1 | tee "$results/$name.txt"
  code=${PIPESTATUS[0]}
  if [ "$code" -eq 77 ]; then
    echo "gpu: $name skipped"
  elif [ "$code" -ne 0 ]; then
    echo "gpu: $name failed with $code after $((SECONDS - started)) s"
    failed+=("$name")
  else
    echo "gpu: $name passed in $((SECONDS - started)) s"
  fi
}

attempt doctor "$reshard" doctor
if command -v nvidia-smi >/dev/null; then attempt driver nvidia-smi; fi
attempt conformance_cuda build/release/conformance cuda --small-cases --every 32
for world in 1 2 4 8; do
  # Four ranks or more on one GPU take 0.1 s a run and longer.
  draws=$((world > 2 ? 200 : 1000))
  attempt "conformance_nccl_$world" build/release/conformance nccl --world "$world" --draws $draws
  attempt "capi_nccl_$world" build/release/capi_on_nccl "$world"
  attempt "conformance_nccl_${world}_declared" build/release/conformance nccl --world "$world" \
    --draws $((draws / 2)) --declared-order
done
attempt bench_cuda build/release/reshard_bench_cuda

validate() {
  local name=$1
  shift
  attempt "validate_$name" "$reshard" validate "$@" --perfetto "$results/$name.json" \
    --measurements "$results/$name.jsonl"
}
validate cuda_transpose --mesh 16 --shape 32768,65536 --dtype bf16 --from 'S(0)' --to 'S(1)' \
  --planner p2p --backend cuda --data-budget 1GiB
validate cuda_strided --mesh 2x8 --shape 32768,65536 --dtype bf16 --from '_S(0,8)S(0)' \
  --to 'S(1)S(0)' --planner p2p --backend cuda --data-budget 1GiB
for backend in cuda nccl; do
  validate "${backend}_layouts" --requests tests/fuzz/corpus/check/kinds.copies --planner p2p \
    --backend $backend
done
validate cuda_fold --mesh 8 --shape 8192,8192 --dtype bf16 --from 'P(sum)' --to 'S(0)' \
  --backend cuda
for world in 1 2 4 8; do
  validate "nccl_transpose_$world" --mesh "$world" --shape 4096,4096 --from 'S(0)' --to 'S(1)' \
    --planner p2p --backend nccl
  validate "nccl_rule_$world" --mesh "$world" --shape 4096,4096 --from 'P(sum)' --to 'S(0)' \
    --planner rule --backend nccl
done

echo "gpu: ${#failed[@]} failed${failed[*]:+: ${failed[*]}}"
[ ${#failed[@]} -eq 0 ]
