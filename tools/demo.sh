#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The main use in one command: installs what is missing, builds a release, and moves the 723 weight
# tensors of Llama-3-70B from their training layout to their inference layout: every plan is proved,
# the bytes of every different request are moved and checked, and the whole is timed on a simulated
# cluster against the bound. Builds the program and libreshard.so, which the Python package loads:
# PYTHONPATH=tools/python python3 -c 'import reshard' works afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/build.sh
print_help_and_leave "$@"

tools/bootstrap.sh
build_preset release reshard reshard_shared
exec build/release/reshard replay traces/llama3-70b-fsdp-to-tp.jsonl "$@"
