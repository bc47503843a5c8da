#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mlp-tp: one tensor-parallel MLP layer, forward and backward, on the 8 GPUs of one node.

Usage: python3 tools/traces/mlp_tp.py [sequence-parallel] > traces/mlp-tp[-sequence-parallel].jsonl

Y = GeLU(X A), Z = Y B, sharded as in Megatron-LM (Shoeybi et al. 2019; sequence parallelism:
Korthikanti et al. 2022): A by columns, B by rows, tp = 8. Hidden 8192 and FFN 28672 as in
Llama-3-70B, 8192 tokens, bf16.

  plain               X is replicated; Z and dX are partial sums, all-reduced (P->R).
  sequence-parallel   X and Z are sharded by tokens: gathered before the first product (S(0)->R),
                      reduce-scattered after the second (P->S(0)); the backward pass mirrors that
                      and gathers X again for dA.

Compute: a product of [m,k] and [k,n] takes 2 m k n / tp floating-point operations per GPU, at half
of the H100's dense bf16 peak (989e12 per second, NVIDIA H100 SXM data sheet). GeLU and other
element-wise work is left out. Products run on stream 0, redistributions on stream 1; each waits
only for what it needs, so dA and dB overlap with communication.
"""

import sys

from trace_lines import write

TOKENS, HIDDEN, FFN, TP = 8192, 8192, 28672, 8
PEAK_FLOPS = 989 * 10**12

sequence_parallel = "sequence-parallel" in sys.argv[1:]
operations = []


def product(name, m, k, n, after):
    flops = 2 * m * k * n // TP
    # At half the peak, in picoseconds, rounded up.
    duration_ps = -(-flops * 2 * 10**12 // PEAK_FLOPS)
    operations.append(
        {
            "op": "compute",
            "id": name,
            "name": name,
            "after": after,
            "ranks": f"0-{TP - 1}",
            "duration_ps": duration_ps,
            "stream": 0,
        }
    )
    return [name]


def move(name, source, destination, after):
    operations.append(
        {
            "op": "redistribute",
            "id": name,
            "name": name,
            "after": after,
            "shape": [TOKENS, HIDDEN],
            "dtype": "bf16",
            "from": source,
            "to": destination,
            "mesh": "tp",
            "stream": 1,
        }
    )
    return [name]


x = move("X gather", "S(0)", "R", []) if sequence_parallel else []
y = product("Y = X A", TOKENS, HIDDEN, FFN, x)
z = product("Z = Y B", TOKENS, FFN, HIDDEN, y)
out = move("Z reduce", "P(sum)", "S(0)" if sequence_parallel else "R", z)

# Backward: the gradient of Z arrives with the placements that Z has.
dz = move("dZ gather", "S(0)", "R", out) if sequence_parallel else out
again = move("X gather again", "S(0)", "R", dz) if sequence_parallel else []
dy = product("dY = dZ B^T", TOKENS, HIDDEN, FFN, dz)
product("dB = Y^T dZ", FFN, TOKENS, HIDDEN, dz)
dx = product("dX = dY A^T", TOKENS, FFN, HIDDEN, dy)
move("dX reduce", "P(sum)", "S(0)" if sequence_parallel else "R", dx)
product("dA = X^T dY", HIDDEN, TOKENS, FFN, dy + again)

write({"topology": "dgx-h100", "meshes": {"tp": f"tp={TP}"}}, operations)
