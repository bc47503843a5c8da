# SPDX-License-Identifier: BSD-3-Clause
"""Plans run on the caller's arrays: one thread per rank, and all ranks in this process."""

import array
import ctypes as c
import queue
import threading
import unittest

import reshard
from reshard import _mpi


def floats(values):
    return array.array("f", values)


class Boxes(dict):
    """Queues, made when first asked for. setdefault keeps one of a key's if two threads ask for it
    at once, where a defaultdict would lose the first and the message in it."""

    def __missing__(self, key):
        return self.setdefault(key, queue.Queue())


class Post:
    """Messages between threads of this process."""

    def __init__(self):
        self.boxes = Boxes()

    def of(self, rank):
        return Transport(self.boxes, rank)


class Transport:
    def __init__(self, boxes, rank):
        self.boxes, self.rank = boxes, rank

    def exchange(self, sends, receives):
        for each in sends:
            self.boxes[self.rank, each.peer, each.tag].put(bytes(each.memory))
        for each in receives:
            each.memory[:] = self.boxes[each.peer, self.rank, each.tag].get(timeout=60)


def run_all(plan, sources, destinations, post=None):
    post = post or Post()
    failures = []

    def run(rank):
        try:
            reshard.execute(plan, rank, sources[rank], destinations[rank], post.of(rank))
        except Exception as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in plan.ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class DLTensor(c.Structure):
    """By dlpack.h, written down again."""

    _fields_ = [
        ("data", c.c_void_p),
        ("device", c.c_int32 * 2),
        ("ndim", c.c_int32),
        ("type", c.c_uint8 * 4),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
        ("rest", c.c_void_p * 2),
    ]


class Tensor:
    """What torch's tensors are to us: f32 by DLPack and nothing else."""

    def __init__(self, values, shape, strides=None, device=1, offset=0):
        self.values = (c.c_float * len(values))(*values)
        dims = c.c_int64 * len(shape)
        self.tensor = DLTensor(
            data=c.addressof(self.values),
            device=(c.c_int32 * 2)(device, 0),
            ndim=len(shape),
            type=(c.c_uint8 * 4)(2, 32, 1, 0),
            shape=dims(*shape),
            strides=dims(*strides) if strides else None,
            byte_offset=offset,
        )

    def __dlpack__(self):
        new = c.pythonapi.PyCapsule_New
        new.restype, new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        return new(c.addressof(self.tensor), b"dltensor", None)


class OnDevice(Tensor):
    def __dlpack_device__(self):
        return (2, 0)  # CUDA


class ExecuteTest(unittest.TestCase):
    def setUp(self):
        self.plan = reshard.plan((4, 4), "f32", 2, "S(0)", "S(1)")
        self.sources = [floats(range(8)), floats(range(8, 16))]
        self.expected = [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]

    def test_ranks_run_over_a_transport(self):
        destinations = [floats([0] * 8), bytearray(32)]
        run_all(self.plan, self.sources, destinations)
        self.assertEqual(list(destinations[0]), self.expected[0])
        self.assertEqual(list(memoryview(destinations[1]).cast("f")), self.expected[1])

    def test_every_step_of_a_large_plan(self):
        plan = reshard.plan((8, 6, 5), "f32", (2, 2), "P(sum)S(1)", "S(0)S(2)", planner="rule")
        whole = floats(range(240))
        made = reshard.LocalTensor.of(
            memoryview(whole).cast("B").cast("f", (8, 6, 5)), (2, 2), "P(sum)S(1)"
        )
        expected = made.redistribute("S(0)S(2)", planner="rule")
        destinations = [bytearray(plan.bytes_of(rank)["destination_bytes"]) for rank in plan.ranks]
        run_all(plan, list(made.shards.values()), destinations)
        for rank in plan.ranks:
            self.assertEqual(destinations[rank], bytes(expected.shards[rank]))

    def test_tensors_by_dlpack(self):
        nothing = reshard.plan((0, 4), "f32", 2, "S(1)", "R")
        empty = [Tensor([], (0, 2), (5, 7)) for _ in range(2)]
        run_all(nothing, empty, [Tensor([], (0, 4)), None])
        # A row of 4 before the data, which the offset skips; an extent of 1 has any stride.
        sources = [
            Tensor([9, 9, 9, 9, *range(8)], (1, 2, 4), (77, 4, 1), offset=16),
            Tensor(range(8, 16), (2, 4)),
        ]
        destinations = [Tensor([0] * 8, (4, 2)), Tensor([0] * 8, (4, 2), (2, 1), device=3)]
        run_all(self.plan, sources, destinations)
        self.assertEqual([list(each.values) for each in destinations], self.expected)

    def test_arrays_that_do_not_fit_are_refused(self):
        def run(source, destination, transport=None):
            reshard.execute(self.plan, 0, source, destination, transport)

        taken = bytearray(32)
        for source, destination, why in (
            (bytes(28), taken, "source_bytes: expected 32"),
            (bytes(32), bytes(32), "destination: expected contiguous writable memory"),
            (memoryview(bytes(64))[::2], taken, "source: expected contiguous memory"),
            (None, taken, "source_bytes: expected 32"),
            (object(), taken, "source: expected None or an array"),
            (Tensor(range(8), (2, 4), (1, 2)), taken, "source: expected contiguous memory"),
            (Tensor(range(8), (2, 4), device=2), taken, "source: expected host memory"),
            (bytes(32), taken, "exchange: expected a function"),
        ):
            with self.subTest(why), self.assertRaisesRegex(reshard.InputError, why):
                run(source, destination)
        with self.assertRaisesRegex(reshard.InputError, "as the arrays are on a device"):
            run(bytes(32), OnDevice([0] * 8, (4, 2)), Post().of(0))
        with self.assertRaisesRegex(reshard.InputError, "transport: expected torch.distributed"):
            run(bytes(32), taken, object())

    def test_messages_of_a_run_have_different_tags(self):
        class Recorder(Transport):
            def exchange(self, sends, receives):
                tags.extend((self.rank, each.peer, each.tag) for each in sends)
                super().exchange(sends, receives)

        tags, post = [], Post()
        post.of = lambda rank: Recorder(post.boxes, rank)
        # An all_reduce is two exchanges between the same ranks.
        plan = reshard.plan((8, 8), "f32", 2, "P(sum)", "R", planner="rule")
        run_all(plan, [bytes(256)] * 2, [bytearray(256), bytearray(256)], post)
        self.assertEqual(len(tags), 4)
        self.assertEqual(len(set(tags)), 4)

    def test_large_messages_travel_in_parts_that_mpi_can_count(self):
        parts = _mpi._parts(memoryview(bytes(range(10))), 4)
        self.assertEqual(
            [bytes(part) for part in parts], [bytes(range(4)), bytes(range(4, 8)), b"\x08\x09"]
        )

        class Communicator:
            def Isend(self, memory, dest, tag):
                self.sent = (bytes(memory), dest, tag)
                return self

            def Irecv(self, memory, source, tag):
                self.received = (source, tag)
                return self

            waited = 0

            def Wait(self):
                self.waited += 1

        communicator = Communicator()
        message = reshard.Transfer(3, 32768 + 5, memoryview(b"ab"))
        _mpi.MpiTransport(communicator).exchange([message], [message])
        self.assertEqual(communicator.sent, (b"ab", 3, 5))
        self.assertEqual(communicator.received, (3, 5))
        self.assertEqual(communicator.waited, 2)

    def test_what_a_transport_raises_comes_back(self):
        class Broken:
            def exchange(self, sends, receives):
                raise KeyError("cable")

        with self.assertRaisesRegex(KeyError, "cable"):
            reshard.execute(self.plan, 0, bytes(32), bytearray(32), Broken())

    def test_a_communicator_of_mpi4py(self):
        class Request:
            def __init__(self, done):
                self.Wait = done

        class Communicator:
            """One of mpi4py's, of this rank, as far as it is asked."""

            def __init__(self, transport):
                self.transport = transport
                self.tags = set()

            def Isend(self, memory, dest, tag):
                self.tags.add(tag)
                self.transport.boxes[self.transport.rank, dest, tag].put(bytes(memory))
                return Request(lambda: None)

            def Irecv(self, memory, source, tag):
                def done():
                    box = self.transport.boxes[source, self.transport.rank, tag]
                    memory[:] = box.get(timeout=60)

                return Request(done)

        post = Post()
        destinations = [bytearray(32), bytearray(32)]
        threads = [
            threading.Thread(
                target=reshard.execute,
                args=(self.plan, r, self.sources[r], destinations[r], Communicator(post.of(r))),
            )
            for r in (0, 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [list(memoryview(each).cast("f")) for each in destinations]
        self.assertEqual(found, self.expected)


class OperationsTest(unittest.TestCase):
    def test_what_a_rank_does(self):
        program = reshard.plan((4, 4), "f32", 2, "S(0)", "S(1)", planner="p2p").operations(1)
        kinds = [operation.kind for operation in program.operations]
        self.assertEqual(kinds, ["copy", "exchange"])
        exchange = program.operations[1]
        (sent,) = exchange.sends
        self.assertEqual(sent.peer, 0)
        self.assertEqual(sent.boxes, [(0, (slice(0, 2), slice(0, 2)))])
        (received,) = exchange.receives
        self.assertEqual(received.boxes, [(1, (slice(0, 2), slice(0, 2)))])
        self.assertEqual(
            program.operations[0].moves,
            [((0, (slice(0, 2), slice(2, 4))), (1, (slice(2, 4), slice(0, 2))))],
        )

    def test_collectives_and_folds(self):
        plan = reshard.plan((8, 4), "f32", (2, 2), "P(sum)R", "RR", planner="rule")
        (operation,) = plan.operations(3).operations
        self.assertEqual((operation.kind, operation.op), ("all_reduce", "sum"))
        self.assertEqual((operation.group, operation.member), ((1, 3), 1))
        self.assertEqual(operation.input, (0, (slice(0, 8), slice(0, 4))))
        for op in ("min", "max", "product"):
            plan = reshard.plan((8, 4), "f32", (2, 2), f"P({op})R", "RR", planner="rule")
            self.assertEqual(plan.operations(0).operations[0].op, op)
        plan = reshard.plan((8, 4), "f32", 2, "P(avg)", "S(0)", planner="p2p")
        program = plan.operations(0)
        (fold,) = [o for o in program.operations if o.kind == "reduce"]
        self.assertEqual(fold.divisor, 2)
        self.assertEqual(fold.folds[0].into, (1, (slice(0, 4), slice(0, 4))))
        self.assertEqual(len(fold.folds[0].operands), 2)
        for box in fold.folds[0].operands:
            self.assertTrue(box.buffer == 0 or box.buffer in program.temporaries)


class LocalTensorTest(unittest.TestCase):
    whole = memoryview(floats(range(48))).cast("B").cast("f", (6, 8))

    def test_there_and_back(self):
        before = reshard.LocalTensor.of(self.whole, (2, 2), "S(0)S(1)")
        self.assertEqual(
            before.shards[3].tolist(), [[28, 29, 30, 31], [36, 37, 38, 39], [44, 45, 46, 47]]
        )
        after = before.redistribute("S(1)R", planner="p2p")
        self.assertEqual(after.plan.planner, "p2p")
        self.assertEqual(after.shards[0].tolist()[5], [40, 41, 42, 43])
        self.assertEqual(after.full().tolist(), self.whole.tolist())
        self.assertIn("f32[6,8] S(1)R", repr(after))

    def test_what_is_no_array_is_named(self):
        with self.assertRaisesRegex(reshard.InputError, "buffer protocol or DLPack, found list"):
            reshard.LocalTensor.of([[1, 2], [3, 4]], 2, "S(0)")

    def test_uneven_and_empty_shards(self):
        before = reshard.LocalTensor.of(self.whole, 4, "S(0)")
        self.assertEqual([len(bytes(each)) // 32 for each in before.shards.values()], [2, 2, 2, 0])
        self.assertEqual(before.redistribute("S(1)").full().tolist(), self.whole.tolist())

    def test_addends(self):
        before = reshard.LocalTensor.of(self.whole, (2, 2), "P(sum)S(1)")
        self.assertEqual(before.full().tolist(), self.whole.tolist())
        doubled = reshard.LocalTensor([self.whole] * 2, (6, 8), 2, "P(sum)")
        self.assertEqual(doubled.full().tolist()[5][7], 94)

    def test_scalars_and_shards_by_rank(self):
        one = memoryview(floats([7])).cast("B").cast("f", ())
        self.assertEqual(reshard.plan((), "f32", 2, "R", "R").shard_shapes(1), ((), ()))
        self.assertEqual(reshard.LocalTensor({1: one, 0: one}, (), 2, "R").full().tolist(), 7)
        given = {1: floats([3, 4]), 0: floats([1, 2])}
        joined = reshard.LocalTensor(given, (4,), 2, "S(0)")
        self.assertEqual(list(joined.shards), [0, 1])
        self.assertEqual(joined.full().tolist(), [1, 2, 3, 4])

    def test_across_meshes(self):
        before = reshard.LocalTensor.of(self.whole, 2, "S(0)")
        there = before.redistribute("S(1)", reshard.Mesh((2,), ranks=(2, 3)))
        self.assertEqual(list(there.shards), [2, 3])
        self.assertEqual(there.full().tolist(), self.whole.tolist())

    def test_numbers_of_shards_must_fit(self):
        plan = reshard.plan((8,), "f32", 2, "S(0)", "R")
        with self.assertRaisesRegex(reshard.InputError, "expected 2"):
            reshard.execute_all(plan, [bytes(16)], [bytearray(32)])
        with self.assertRaisesRegex(reshard.InputError, "destinations: expected 1"):
            reshard.execute_all(plan, [bytes(16)], [bytearray(32)] * 2)
