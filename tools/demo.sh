#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The main use in one command: installs what is missing, builds a release, and plans the transfer of
# Qwen3-235B's weights from training with Megatron-Core to two engines of vLLM: worked out from its
# config.json, proved, and timed on a simulated cluster against the bound. Builds the program and
# libreshard.so, which the Python package loads: PYTHONPATH=tools/python python3 -c 'import reshard'
# works afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build.sh
print_help_and_leave "$@"

tools/bootstrap.sh
build_preset release reshard reshard_shared
exec build/release/reshard model traces/models/qwen3-235b.json \
  --from 'megatron tp=4 pp=2 ep=8 dp=8 etp=1' --to 'vllm tp=8 ep replicas=2' \
  --topology dgx-h100:10 "$@"
