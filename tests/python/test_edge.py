# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that the library cannot represent or read: each is refused in one sentence, and none is
taken for another."""

import array
import ctypes as c
import os
import pathlib
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import reshard
from reshard import Mesh, Partial, Replicate, Shard, StridedShard


def plan_of(*more, **options):
    return reshard.plan((4, 4), "f32", 2, "S(0)", "S(1)", *more, **options)


class Numbers(unittest.TestCase):
    def test_ranks_beyond_32_bits_are_no_other_ranks(self):
        plan = plan_of()
        for rank in (1 << 32, (1 << 32) + 1, 1 << 31, -1, True, 1.0, "1", None):
            for ask in (plan.operations, plan.shard_shapes, plan.bytes_of, plan.program):
                with self.subTest(rank=rank, ask=ask.__name__):
                    self.assertRaisesRegex(reshard.InputError, "^rank: expected", ask, rank)
            with self.assertRaisesRegex(reshard.InputError, "^rank: expected"):
                reshard.execute(plan, rank, bytes(32), bytearray(32))

    def test_limits_of_memory_do_not_wrap(self):
        for limit in (1 << 64, (1 << 64) + 1, 1 << 63, -1, True, 1e9, "8GiB"):
            with self.subTest(limit), self.assertRaisesRegex(
                reshard.InputError, "^memory_limit: expected"
            ):
                plan_of(memory_limit=limit)
        self.assertEqual(plan_of(memory_limit=(1 << 63) - 1).planner, plan_of().planner)

    def test_extents(self):
        for shape in ({4, 8}, {4: 8}, (True, 4), (4, 1 << 64), b"44", "4,,4", "4_0", (4, -1), "4,"):
            with self.subTest(shape=shape), self.assertRaisesRegex(reshard.InputError, "^shape: "):
                reshard.plan(shape, "f32", 2, "R", "R")
        meshes = ({2, 4}, True, (2, True), b"24", {2: 2}, (2, -1), 2.0, 1 << 64, None, [[0], 1.5])
        for mesh in meshes:
            with self.subTest(mesh=mesh), self.assertRaisesRegex(
                reshard.InputError, "^(mesh|rank)"
            ):
                reshard.plan((4, 4), "f32", mesh, "R", "R")
        self.assertEqual(reshard.plan((4,), "f32", [[1, 0]], "RS(0)", "RR").ranks, [0, 1])

    def test_meshes_say_what_they_are(self):
        for mesh in (
            lambda: Mesh((2, 2), names=("a",)),
            lambda: Mesh((2, 2), names=("a", "b=3")),
            lambda: Mesh((2, 2), names=("a,c", "b")),
            lambda: Mesh((2, 2), ranks=(0, 1, 2, 1 << 32)),
            lambda: Mesh((2, 2), ranks={0, 1, 2, 3}),
            lambda: Mesh({2, 3}),
        ):
            with self.assertRaises(reshard.InputError):
                reshard.plan((4, 4), "f32", mesh(), "RR", "RR")

    def test_placements(self):
        for placement in (
            Shard("0"),
            Shard(1.5),
            Shard(None),
            Shard(True),
            Shard(1 << 64),
            Partial("sum)S(0"),
            Partial(7),
            StridedShard(0, "2"),
            StridedShard(0, 1 << 64),
            None,
            7,
        ):
            with self.subTest(placement), self.assertRaises(reshard.InputError):
                reshard.plan((4, 4), "f32", 2, [placement], "R")
        # -7 + 5 is a dim, too.
        with self.assertRaisesRegex(reshard.InputError, "found '?-7"):
            reshard.plan((2,) * 5, "f32", 2, [Shard(-7)], "R")


class Texts(unittest.TestCase):
    def test_nul_ends_no_text(self):
        for words in (
            {"mesh": "2\0x2"},
            {"source": "S(0)\0R"},
            {"dtype": "f32\0"},
            {"planner": "p2p\0x"},
            {"topology": "dgx-h100\0:2"},
            {"dtype": "\ud800"},
        ):
            request = {"mesh": 2, "dtype": "f32", "source": "S(0)", "target": "S(1)", **words}
            with (
                self.subTest(words),
                self.assertRaisesRegex(reshard.InputError, "expected a string"),
            ):
                reshard.plan((4, 4), **request)
        with self.assertRaisesRegex(reshard.InputError, "without NUL"):
            reshard.command("topo", "show", "dgx-h100\0x")
        with self.assertRaisesRegex(reshard.InputError, "without NUL"):
            reshard.topology("dgx-h100\0x")

    def test_other_kinds_of_arguments(self):
        plan = plan_of()
        for call in (
            lambda: plan_of(planner=7),
            lambda: plan_of(planner=None),
            lambda: plan_of(topology=7),
            lambda: plan.simulate(data=7),
            lambda: reshard.plan((4,), object(), 2, "R", "R"),
            lambda: reshard.plan((4,), float, 2, "R", "R"),
            lambda: reshard.command(7),
            lambda: reshard.command(),
            lambda: reshard.topology(None),
            lambda: reshard.replay(7),
            lambda: reshard.replay([7]),
            lambda: reshard.replay([{"op": {1, 2}}]),
            lambda: reshard.replay({"op": "compute"}),
            lambda: reshard.compare({1, 2}, {}),
            lambda: reshard.compare({}, {}),
            lambda: reshard.sweep((4, 4), 2, planner={"p2p"}),
            lambda: reshard.sweep(None, 2),
            lambda: reshard.execute(None, 0, None, None),
            lambda: reshard.execute_all(plan, 7, []),
            lambda: reshard.execute_all(None, [], []),
            lambda: reshard.LocalTensor(7, (4,), 2, "R"),
            lambda: reshard.LocalTensor([], (4,), 2, "R"),
            lambda: reshard.LocalTensor.of(None, 2, "R"),
            lambda: reshard.LocalTensor.of(array.array("f", [1, 2]), 2, None),
        ):
            with self.subTest(call), self.assertRaises(reshard.InputError):
                call()

    def test_drawn_arguments_are_planned_or_refused(self):
        """Whatever stands where: a plan, or InputError with a sentence."""
        draw = random.Random(5)

        class Odd:
            dim = reduce_op = split_factor = names = ranks = shape = property(lambda self: 1 / 0)

            def __repr__(self):
                raise ValueError("no")

        things = [
            None, True, 0, -1, 2, 1 << 31, 1 << 63, 1 << 64, 2.0, "", "2", "R", "S(0)", "f32",
            "\0", "\ud800", "é", b"2", (), (2,), [2, 2], {2}, {2: 2}, range(2), object(), Odd,
            [[0, 1]], Shard(0), [Shard(0)], [Replicate()], [Partial()], Mesh((2,)), [None], ["R"],
            int, 10**30, Odd(),
            "x" * 70000, [Shard(10**30)], pathlib.Path("/nowhere"), float("nan"), lambda: None,
        ]  # fmt: skip
        names = (
            "shape dtype mesh source target to_mesh planner topology memory_limit extra_memory "
            "free_source"
        ).split()
        refused = 0
        for _ in range(2000):
            request = {
                "shape": (4, 4), "dtype": "f32", "mesh": 2, "source": "S(0)", "target": "S(1)",
            }  # fmt: skip
            for name in draw.sample(names, draw.choice((1, 1, 2))):
                request[name] = draw.choice(things)
            try:
                reshard.plan(**request)
            except reshard.InputError as error:
                refused += 1
                self.assertGreater(len(str(error)), 10)
        self.assertGreater(refused, 1000)


class Arrays(unittest.TestCase):
    def run_one(self, source, destination=None, dtype="f32"):
        plan = reshard.plan((4,), dtype, 1, "R", "R")
        reshard.execute(plan, 0, source, bytearray(16) if destination is None else destination)

    def test_elements_are_those_of_the_plan(self):
        self.run_one(array.array("f", range(4)))
        self.run_one(bytes(16))
        self.run_one(array.array("i", range(4)), dtype="i32")
        self.run_one(array.array("H", range(4)), bytearray(8), dtype="bf16")
        for values, dtype in (
            (array.array("i", range(4)), "f32"),
            (array.array("d", range(2)), "f32"),
            (array.array("q", range(2)), "i32"),
            (array.array("I", range(4)), "i32"),
            ((c.c_float.__ctype_be__ * 4)(1, 2, 3, 4), "f32"),
            ((c.c_int32.__ctype_be__ * 4)(1, 2, 3, 4), "i32"),
            ((c.c_int16 * 8)(), "f32"),
        ):
            with self.subTest(dtype=dtype, values=values), self.assertRaisesRegex(
                reshard.InputError, "^source: expected (f32|i32), like the plan, or bytes; found"
            ):
                self.run_one(values, dtype=dtype)
            with self.assertRaisesRegex(reshard.InputError, "^destination: expected"):
                self.run_one(bytes(16), values, dtype=dtype)
            plan = reshard.plan((4,), dtype, 1, "R", "R")
            with self.assertRaisesRegex(reshard.InputError, r"^sources\[0\]: expected"):
                reshard.execute_all(plan, [values], [bytearray(16)])

    def test_shards_of_a_local_tensor(self):
        big = (c.c_float.__ctype_be__ * 4)(1, 2, 3, 4)
        with self.assertRaisesRegex(reshard.InputError, "found the format '>f'"):
            reshard.LocalTensor([big], (4,), 1, "R")


def floats(*values):
    return array.array("f", values)


class LocalTensors(unittest.TestCase):
    def test_shards_of_other_sizes_are_refused_at_once(self):
        column = lambda rows: memoryview(bytearray(4 * rows)).cast("f", (rows, 1))  # noqa: E731
        own = {rank: column(3 if rank < 4 else 2) for rank in range(8)}
        with self.assertRaisesRegex(
            reshard.InputError,
            r"^shards: rank 4: expected the shape \[3, 1\], as \[20, 1\] in S\(0\) has there, "
            r"found \[2, 1\]$",
        ):
            reshard.LocalTensor(own, (20, 1), (8,), "S(0)")
        chunks = [3, 3, 3, 3, 3, 3, 2]
        right = [column(rows) for rows in chunks] + [memoryview(bytearray()).cast("f")]
        reshard.LocalTensor(right, (20, 1), (8,), "S(0)")

    def test_all_ranks_have_one_of_one_dtype(self):
        for shards, why in (
            ([floats(1)], "ranks 0, 1, found those of 0$"),
            ([floats(1)] * 3, "found those of 0, 1, 2$"),
            ({0: floats(1), 2: floats(1)}, "found those of 0, 2$"),
            ({0: floats(1), 1 << 32: floats(1)}, "^rank: expected"),
            ([floats(1), array.array("i", [1])], "rank 1: expected f32, like the first, found i32"),
            ([floats(1), floats(1, 2)], r"rank 1: expected the shape \[1\]"),
            ([floats(1), None], "expected one with the buffer protocol"),
        ):
            with self.subTest(why), self.assertRaisesRegex(reshard.InputError, why):
                reshard.LocalTensor(shards, (2,), 2, "S(0)")

    def test_meshes_of_nested_ranks(self):
        whole = memoryview(floats(*range(16))).cast("B").cast("f", (4, 4))
        for mesh in ("[[0,1],[2,3]]", "[[0, 1], [2, 3]]", [[0, 1], [2, 3]]):
            before = reshard.LocalTensor.of(whole, mesh, "S(0)S(1)")
            self.assertEqual(before.shards[3].tolist(), [[10, 11], [14, 15]])
            self.assertEqual(before.redistribute("S(1)R").full().tolist(), whole.tolist())


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.plan = plan_of()

    def test_a_topology_that_changed_is_another(self):
        file = self.folder / "machine.topo"
        text = reshard.command("topo", "convert", "dgx-h100")
        file.write_text(text)
        first = plan_of(topology=file)
        self.assertIs(plan_of(topology=str(file)), first)
        fast, summary = first.time_ps, first.summary()
        file.write_text(text.replace("port nvlink 450GB/s", "port nvlink 1GB/s"))
        second = plan_of(topology=file)
        self.assertGreater(second.time_ps, fast)
        self.assertNotEqual(second.summary(), summary)
        self.assertEqual(second.to_dict()["time_ps"], second.time_ps)
        # A plan is reported on the topology that it was made for.
        self.assertEqual(first.summary(), summary)
        for report in (first.to_dict(), first.simulate()):
            self.assertEqual(report["time_ps"], fast)

    def test_pages_replace_or_leave_what_was_there(self):
        page = self.folder / "page.html"
        page.write_text("old")
        page.chmod(0o640)
        self.plan.to_html(page)
        self.assertTrue(page.read_text().startswith("<!DOCTYPE html>"))
        self.assertEqual(stat.S_IMODE(page.stat().st_mode), 0o640)
        self.assertEqual(os.listdir(self.folder), ["page.html"])
        link = self.folder / "link.html"
        link.symlink_to(page)
        page.write_text("old")
        self.plan.to_html(str(link))
        self.assertTrue(link.is_symlink())
        self.assertIn("<!DOCTYPE", page.read_text())

    def test_a_full_disk_leaves_the_old_page(self):
        script = (
            "import resource, signal, sys, reshard\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "plan = reshard.plan((4, 4), 'f32', 2, 'S(0)', 'S(1)')\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "for write in (plan.to_html, plan.to_perfetto):\n"
            "    try:\n"
            "        write(sys.argv[1])\n"
            "    except OSError as error:\n"
            "        print(error.errno)\n"
        )
        page = self.folder / "page.html"
        page.write_text("old")
        found = subprocess.run(
            [sys.executable, "-c", script, str(page)], capture_output=True, text=True
        )
        self.assertEqual((found.stdout, found.stderr), ("27\n27\n", ""))  # EFBIG
        self.assertEqual(page.read_text(), "old")
        self.assertEqual(os.listdir(self.folder), ["page.html"])

    def test_new_files_have_the_mode_that_the_mask_leaves(self):
        before = os.umask(0o027)
        try:
            self.plan.to_perfetto(self.folder / "new.json")
        finally:
            os.umask(before)
        mode = (self.folder / "new.json").stat().st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o640)

    def test_reports_do_not_show_where_lines_lay(self):
        lines = [{"op": "compute", "ranks": "0", "duration_ps": 3}]
        self.assertEqual(reshard.replay(lines), reshard.replay(lines))
        self.assertNotIn(tempfile.gettempdir(), str(reshard.replay(lines)))
        a = reshard.simulate((4, 4), "f32", 2, "S(0)", "S(1)", data="proof")
        self.assertNotIn(tempfile.gettempdir(), str(reshard.compare(a, a)))
        with self.assertRaises(reshard.InputError) as caught:
            reshard.replay([{"op": "nothing"}])
        self.assertNotIn(tempfile.gettempdir(), str(caught.exception))
        self.assertIn("trace.jsonl:2", str(caught.exception))
        with self.assertRaises(reshard.Findings) as caught:
            reshard.replay([{"op": "send", "rank": 0, "peer": 1, "bytes": 8}])
        self.assertNotIn(tempfile.gettempdir(), str(caught.exception) + caught.exception.text)


class Interrupts(unittest.TestCase):
    def interrupted(self, script):
        """Its lines, and how it ended: Ctrl-C comes when it has begun what takes seconds."""
        begin = "import reshard\nask = lambda: reshard.plan((256,) * 4, 'f32', (8,) * 4, "
        begin += "'S(0)S(0)S(1)S(1)', 'S(2)S(3)S(2)S(3)', planner='p2p')\n"
        begin += "print('now', flush=True)\n"
        child = subprocess.Popen(
            [sys.executable, "-c", begin + script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(child.stdout.readline(), "now\n")
        time.sleep(0.3)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        line = child.stdout.readline()
        took = time.monotonic() - begin
        errors = child.communicate(timeout=120)[1]
        return line, took, child.returncode, errors

    def test_ctrl_c_ends_a_long_call(self):
        line, took, code, errors = self.interrupted(
            "import os\n"
            "try:\n    ask()\n"
            "except KeyboardInterrupt:\n    print('heard', flush=True)\n    os._exit(7)\n"
        )
        self.assertEqual((line, code, errors), ("heard\n", 7, ""))
        self.assertLess(took, 2)

    def test_ctrl_c_ends_the_program(self):
        line, took, code, errors = self.interrupted("ask()\n")
        self.assertEqual((line, code), ("", -signal.SIGINT))
        self.assertTrue(errors.endswith("KeyboardInterrupt\n"), errors)
        self.assertLess(took, 2)
