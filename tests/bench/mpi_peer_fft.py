# SPDX-License-Identifier: BSD-3-Clause
"""One of the programs that mpi_peers.py compares: mpi4py-fft's Pencil.transfer (MPI_Alltoallw with
subarray types), S(0) -> S(1) of an N x N float32 array.

Prints the median time of a transfer in microseconds: from a barrier to the last rank's end.
"""

import sys

import numpy
from mpi4py import MPI
from mpi4py_fft.pencil import Pencil, Subcomm

n = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 9
comm = MPI.COMM_WORLD
by_rows = Pencil(Subcomm(comm, [0, 1]), (n, n), axis=1)
by_columns = by_rows.pencil(0)
transfer = by_rows.transfer(by_columns, "f")


def expected(pencil):
    rows, columns = (
        numpy.arange(start, start + count, dtype=numpy.int64)
        for start, count in zip(pencil.substart, pencil.subshape)
    )
    return ((rows[:, None] * n + columns[None, :]) % 16777213).astype("f")


source = numpy.ascontiguousarray(expected(by_rows))
destination = numpy.zeros(by_columns.subshape, dtype="f")
times = []
for i in range(-2, repetitions):  # two to warm up
    comm.Barrier()
    begin = MPI.Wtime()
    transfer.forward(source, destination)
    slowest = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
    if i >= 0:
        times.append(slowest)
if not numpy.array_equal(destination, expected(by_columns)):
    print(f"rank {comm.rank}: wrong data", file=sys.stderr)
    comm.Abort(1)
if comm.rank == 0:
    print(f"{sorted(times)[len(times) // 2] * 1e6:.1f}")
