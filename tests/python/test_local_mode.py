# SPDX-License-Identifier: BSD-3-Clause
"""reshard.torch within torch's LocalTensorMode: all ranks of a DTensor in one process. Skipped if
the installed torch does not have it."""

import unittest

try:
    import torch
    import torch.distributed as dist
    from torch.distributed._local_tensor import LocalTensorMode
    from torch.distributed.tensor import (
        DTensor,
        Partial,
        Replicate,
        Shard,
        distribute_tensor,
        init_device_mesh,
    )
    from torch.testing._internal.distributed.fake_pg import FakeStore
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "no torch with LocalTensorMode")
class LocalModeTest(unittest.TestCase):
    def setUp(self):
        dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
        self.addCleanup(dist.destroy_process_group)
        self.whole = torch.arange(64.0).reshape(8, 8)

    def assert_locals(self, dtensor, expected):
        found = dtensor._local_tensor._local_tensors
        self.assertEqual(list(found), [0, 1, 2, 3])
        for rank, local in found.items():
            self.assertTrue(torch.equal(local, expected(rank // 2, rank % 2)), f"rank {rank}")

    def test_forward_backward_and_sums(self):
        from reshard.torch import redistribute, redistributing

        rows = self.whole.chunk(2, 0)
        with LocalTensorMode(4):
            mesh = init_device_mesh("cpu", (2, 2))
            x = distribute_tensor(self.whole, mesh, [Shard(0), Shard(1)]).requires_grad_()
            y = redistribute(x, [Shard(1), Replicate()])
            (y * y).to_local().sum().backward()
            with redistributing():
                z = x.redistribute(placements=[Replicate(), Replicate()])
            addends = DTensor.from_local(
                self.whole.clone(), mesh, [Partial(), Replicate()], run_check=False
            )
            summed = redistribute(addends, [Replicate(), Shard(0)])
        self.assert_locals(y, lambda row, column: self.whole.chunk(2, 1)[row])
        self.assert_locals(x.grad, lambda row, column: 2 * rows[row].chunk(2, 1)[column])
        self.assert_locals(z, lambda row, column: self.whole)
        self.assert_locals(summed, lambda row, column: 2 * rows[column])

    def test_a_job_forward_and_backward(self):
        from reshard.torch import redistribute_all

        rows, columns = self.whole.chunk(2, 0), self.whole.chunk(2, 1)
        with LocalTensorMode(4):
            mesh = init_device_mesh("cpu", (2, 2))
            x = {
                "a": distribute_tensor(self.whole, mesh, [Shard(0), Shard(1)]).requires_grad_(),
                "b": distribute_tensor(self.whole.int(), mesh, [Replicate(), Shard(0)]),
                "c": DTensor.from_local(
                    self.whole.clone(), mesh, [Partial(), Replicate()], run_check=False
                ),
            }
            y = redistribute_all(x, {"a": "S(1)R", "b": "S(1)R", "c": "RS(0)"})
            (y["a"] * y["a"]).to_local().sum().backward()
        self.assert_locals(y["a"], lambda row, column: columns[row])
        self.assert_locals(y["b"], lambda row, column: columns[row].int())
        self.assert_locals(y["c"], lambda row, column: 2 * rows[column])
        self.assert_locals(x["a"].grad, lambda row, column: 2 * rows[row].chunk(2, 1)[column])
