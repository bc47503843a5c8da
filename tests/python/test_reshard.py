# SPDX-License-Identifier: BSD-3-Clause
"""The Python package on a library that was built: RESHARD_LIBRARY names it, PYTHONPATH the package.
Needs only the standard library; objects with the same attributes replace torch's.
"""

import array
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import timeit
import unittest

import reshard
from reshard import Mesh, Partial, Replicate, Shard, StridedShard

TRANSPOSE = ("S(0)S(1)", "S(1)S(0)")


class Tensor:
    """As little of torch's as a DeviceMesh has."""

    def __init__(self, shape, ranks):
        self.shape, self.ranks = shape, ranks

    def flatten(self):
        return self

    def tolist(self):
        return self.ranks


class DeviceMesh:
    mesh_dim_names = ("dp", "tp")
    mesh = Tensor((2, 2), [4, 5, 6, 7])


class _StridedShard:
    dim, split_factor = 0, 2


class Dtype:
    def __str__(self):
        return "torch.bfloat16"


class PlanTest(unittest.TestCase):
    def test_a_plan_tells_what_the_command_line_tells(self):
        plan = reshard.plan((64, 64), "bf16", (4, 4), *TRANSPOSE, planner="p2p")
        report = json.loads(
            reshard.command(
                *("plan --mesh 4x4 --shape 64,64 --dtype bf16 --planner p2p --json".split()),
                *("--from", TRANSPOSE[0], "--to", TRANSPOSE[1]),
            )
        )
        self.assertEqual(plan.planner, "p2p")
        self.assertEqual(plan.request, "bf16[64,64] S(0)S(1) on 4x4 -> S(1)S(0)")
        self.assertEqual(plan.step_count, len(report["steps"]))
        self.assertEqual(plan.steps, report["steps"])
        self.assertEqual(plan.received_bytes_max, report["bytes_received_max"])
        self.assertEqual(plan.received_bytes_total, report["bytes_received_total"])
        self.assertEqual(plan.peak_bytes_max, report["peak_bytes_max"])
        self.assertEqual(plan.time_ps, report["time_ps"])
        self.assertEqual(plan.bound_ps, report["bound"]["time_ps"])
        ranks = {row["rank"]: row for row in report["ranks"]}
        self.assertEqual(plan.bytes_of(1)["received_bytes"], ranks[1]["bytes_received"])
        self.assertEqual(plan.bytes_of(1)["source_bytes"], 64 * 64 * 2 // 16)
        self.assertIn("ratio to bound", plan.summary())
        self.assertIn("why", plan.explain())
        self.assertTrue(plan.to_text().startswith("reshard-plan"))
        self.assertIn("p2p", repr(plan))

    def test_equal_requests_are_planned_once(self):
        first = reshard.plan((8, 8), "f32", (2, 2), "S(0)R", "RS(1)")
        for mesh in ("2x2", [2, 2], Mesh((2, 2))):
            for source in ("S(0)R", [Shard(0), Replicate()], (Shard(-2), Replicate())):
                self.assertIs(reshard.plan([8, 8], "f32", mesh, source, "RS(1)"), first)
        self.assertIsNot(reshard.plan((8, 8), "f32", "2x2", "S(0)R", "RS(1)", planner="p2p"), first)

    def test_placements_and_meshes_are_values(self):
        self.assertEqual(Shard(1), Shard(1))
        self.assertNotEqual(Shard(1), Shard(0))
        self.assertNotEqual(Shard(1), Partial(1))
        self.assertEqual({Replicate(): 1}[Replicate()], 1)
        self.assertEqual(repr(StridedShard(0, 2)), "StridedShard(dim=0, split_factor=2)")
        mesh = Mesh([2, 2], names=["a", "b"], ranks=range(4))
        self.assertEqual(mesh, Mesh((2, 2), ("a", "b"), (0, 1, 2, 3)))
        self.assertEqual(repr(Mesh((2,))), "Mesh(shape=(2,), names=None, ranks=None)")

    def test_objects_of_torch_are_known_by_their_looks(self):
        source, target = [_StridedShard(), Replicate()], [Replicate(), Partial("sum")]
        plan = reshard.plan((8, 8), Dtype(), DeviceMesh(), source, target)
        self.assertEqual(plan.request, "bf16[8,8] _S(0, 2)R on dp=2,tp=2 (ranks 4-7) -> RP(sum)")
        self.assertEqual(plan.bytes_of(7)["destination_bytes"], 8 * 8 * 2)
        self.assertEqual(
            reshard.plan((8,), "f32", 4, StridedShard(0, 2), "R").request,
            "f32[8] _S(0, 2) on 4 -> R",
        )

    def test_layouts_of_boxes(self):
        boxes = "boxes(0: [0:2,:], [4:6,:]; 1: [6:8,:], [2:4,:])"
        whole = memoryview(array.array("f", range(16))).cast("B").cast("f", (8, 2))
        made = reshard.LocalTensor.of(whole, 2, "S(0)").redistribute(boxes)
        rows = [list(memoryview(made.shards[rank]).cast("B").cast("f")) for rank in (0, 1)]
        self.assertEqual(rows[0], [0, 1, 2, 3, 8, 9, 10, 11])
        self.assertEqual(rows[1], [12, 13, 14, 15, 4, 5, 6, 7])
        self.assertEqual(bytes(made.redistribute("R").shards[1]), bytes(whole))
        with self.assertRaisesRegex(reshard.InputError, "planner rule: expected placements"):
            reshard.plan((8, 2), "f32", 2, "S(0)", boxes, planner="rule")

    def test_across_meshes(self):
        plan = reshard.plan(
            "32,32", "f32", Mesh((2,)), "S(0)", "RS(1)", to_mesh=Mesh((2, 2), ranks=(4, 5, 6, 7))
        )
        self.assertEqual(plan.bytes_of(5)["destination_bytes"], 32 * 32 * 4 // 2)
        self.assertEqual(plan.bytes_of(5)["source_bytes"], 0)

    def test_a_request_in_other_words(self):
        plan = reshard.plan((8, 8), "f32", "2", "S(0)", "R", to_mesh=Mesh((2,), ranks=(2, 3)))
        other = reshard.plan(
            (8, 8),
            "f32",
            src_mesh=2,
            src_placements=[Shard(0)],
            dst_mesh=Mesh((2,), ranks=(2, 3)),
            dst_placements=[Replicate()],
        )
        self.assertIs(plan, other)

        class DTensor:
            shape, dtype, device_mesh = (8, 8), Dtype(), DeviceMesh()
            placements = [Shard(0), Replicate()]

        self.assertIn("bf16[8,8] S(0)R on dp=2,tp=2", reshard.plan(DTensor(), "RR").request)
        with self.assertRaisesRegex(reshard.InputError, "target: expected placements, found None"):
            reshard.plan((8, 8), "f32", 2, "S(0)")

    def test_a_timeline_is_written(self):
        plan = reshard.plan((8, 8), "f32", 4, "S(0)", "S(1)")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "timeline.json")
            text = plan.to_perfetto(path)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
        self.assertIn("traceEvents", json.loads(text))

    def test_a_page_is_shown(self):
        plan = reshard.plan((8, 8), "f32", 4, "S(0)", "S(1)")
        page = plan.to_html()
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        self.assertIn("f32[8,8] S(0) on 4", page)
        shown = plan._repr_html_()
        self.assertIn('<iframe srcdoc="&lt;!DOCTYPE html&gt;', shown)
        self.assertEqual(shown.count('"'), 4)

    def test_many_threads_plan_at_once(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            plans = pool.map(
                lambda extent: reshard.plan((extent, 64), "f32", (4, 4), *TRANSPOSE), range(64, 96)
            )
            for extent, plan in zip(range(64, 96), plans):
                self.assertIn(f"f32[{extent},64]", plan.request)


class CommandsTest(unittest.TestCase):
    def test_a_simulation_and_its_bound(self):
        request = ((64, 64), "f32", (4, 4), *TRANSPOSE)
        report = reshard.simulate(*request)
        self.assertTrue(report["data"]["checked"])
        self.assertFalse(reshard.simulate(*request, data="proof")["data"]["checked"])
        bound = reshard.bound(*request)
        self.assertEqual(bound["bound_ps"], report["bound"]["time_ps"])
        self.assertEqual(bound["bound_ps"], max(bound.values()))
        ideal = reshard.simulate(*request, data="proof", transport="ideal")
        self.assertEqual(ideal["transport"], "ideal")
        self.assertEqual(ideal["time_ps"], ideal["ideal_time_ps"])

    def test_a_sweep(self):
        report = reshard.sweep((16, 16), (2, 2), planner=["p2p", "rule"], placements="R,S(0)")
        self.assertEqual({row["planner"] for row in report["rows"]}, {"p2p", "rule"})
        self.assertEqual(len(report["rows"]), 2 * 16)
        for cold in (True, False):
            report = reshard.sweep((16, 16), 2, planner="p2p", cold=cold)
            self.assertEqual("first_use_ps" in report["rows"][0], cold)
        both = reshard.sweep((16, 16), ["2", "4"], planner="p2p")
        self.assertEqual(both["meshes"], ["2", "4"])

    def test_a_trace_of_lines(self):
        lines = [{"op": "compute", "ranks": "0", "duration_ps": 3_000_000}]
        self.assertEqual(reshard.replay(lines)["time_ps"], 3_000_000)
        lines.insert(0, {"reshard_trace": 1, "topology": "dgx-a100"})
        self.assertEqual(reshard.replay(lines)["topology"], "dgx-a100:1")

    def test_reports_side_by_side(self):
        a = reshard.simulate((64, 64), "f32", 4, "S(0)", "R", planner="rule", data="proof")
        b = reshard.simulate((64, 64), "f32", 4, "S(0)", "R", planner="p2p", data="proof")
        self.assertFalse(reshard.compare(a, a)["differs"])
        (planner,) = [t for t in reshard.compare(a, b)["texts"] if t["name"] == "planner"]
        self.assertEqual((planner["a"], planner["b"]), ("rule", "p2p"))
        reshard.compare(a, a, fail_on="time>0,bytes>0")
        slower = {**a, "time_ps": 2 * a["time_ps"]}
        with self.assertRaisesRegex(reshard.Findings, r"time>5%: time_ps is .*\+100\.0 %"):
            reshard.compare(a, slower, fail_on="bytes>0,time>5%")

    def test_what_check_takes(self):
        layouts = [
            {"tensor": "w", "shape": [4], "dtype": "f32"},
            {"side": "from", "tensor": "w", "mesh": "1"},
            {"side": "to", "tensor": "w", "mesh": "1", "ranks": "1"},
        ]
        copies = [{"from": {"rank": 0, "tensor": "w"}, "to": {"rank": 1, "tensor": "w"}}]
        report = reshard.check(layouts, copies, without="each")
        self.assertTrue(report["proved"])
        self.assertEqual([each["rank"] for each in report["without_each"]], [0])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "my.copies"
            lines = [{"reshard_check": 1}, *layouts, *copies]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            self.assertTrue(reshard.check(path)["proved"])
            self.assertEqual(reshard.plan_job(path).received_bytes_total, 16)
            with self.assertRaisesRegex(reshard.InputError, "^copies: expected none"):
                reshard.check(path, copies)
        for wrong in ({}, 3, b"x", [1]):
            with self.assertRaisesRegex(reshard.InputError, "^layouts: expected "):
                reshard.check(wrong)
        with self.assertRaisesRegex(reshard.InputError, "^copies: expected lines"):
            reshard.check(layouts, {"from": {}})

    def test_machines(self):
        self.assertIn("dgx-h100", [each["name"] for each in reshard.topologies()])
        self.assertEqual(reshard.topology("dgx-h100:2")["devices"], 16)


class ErrorTest(unittest.TestCase):
    def test_wrong_input_is_a_value_error_with_one_sentence(self):
        with self.assertRaisesRegex(ValueError, r"to: expected a tensor dim between -1 and 0"):
            reshard.plan((8,), "f32", 4, "S(0)", "S(3)")
        with self.assertRaisesRegex(reshard.InputError, "found 'f31'"):
            reshard.plan((8,), "f31", 4, "S(0)", "R")
        with self.assertRaisesRegex(reshard.InputError, "placement: expected Shard"):
            reshard.plan((8,), "f32", 4, [object()], "R")
        with self.assertRaisesRegex(reshard.InputError, "needs"):
            reshard.plan((1024,), "f32", 4, "S(0)", "R", memory_limit=1000)
        for shape in ((8.5,), "8,x", None):
            with self.assertRaisesRegex(reshard.InputError, "shape: expected (a )?whole numbers?,"):
                reshard.plan(shape, "f32", 4, "S(0)", "R")
        with self.assertRaisesRegex(reshard.InputError, "mesh: expected a string, extents"):
            reshard.plan((8,), "f32", object(), "S(0)", "R")
        with self.assertRaisesRegex(reshard.InputError, "memory_limit: expected a whole number"):
            reshard.plan((8,), "f32", 4, "S(0)", "R", memory_limit="8GiB")
        with self.assertRaisesRegex(reshard.InputError, "/nowhere/a.topo"):
            reshard.plan((8,), "f32", 4, "S(0)", "R", topology=pathlib.Path("/nowhere/a.topo"))
        with self.assertRaisesRegex(reshard.InputError, "'--mash'"):
            reshard.command("plan", "--mash")

    def test_findings_carry_the_report(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as trace:
            trace.write('{"reshard_trace": 1}\n{"op": "send", "rank": 0, "peer": 1, "bytes": 8}\n')
            trace.flush()
            with self.assertRaisesRegex(reshard.Findings, "has no recv"):
                reshard.command("replay", trace.name)
        machine = reshard.command("topo", "convert", "dgx-h100").replace(
            "port nvlink 450GB/s", "port nvlink 4GB/s"
        )
        with tempfile.NamedTemporaryFile("w", suffix=".topo") as file:
            file.write(machine)
            file.flush()
            with self.assertRaises(reshard.Findings) as caught:
                reshard.command("topo", "check", file.name)
        self.assertIn("class NET achieves 50.000 GB/s", caught.exception.text)


class SpeedTest(unittest.TestCase):
    """Processor time beside something else's in the same run, the best of several each."""

    def test_the_import_is_short(self):
        script = (
            "import time; a = time.process_time(); import {}; print(time.process_time() - a)"
        )

        def best(module):
            command = [sys.executable, "-c", script.format(module)]
            return min(
                float(subprocess.run(command, capture_output=True).stdout) for _ in range(5)
            )

        self.assertLess(best("reshard"), 2 * best("asyncio"))

    def test_what_was_planned_is_at_hand(self):
        def ask(rows):
            reshard.plan(
                (rows, 4096), "bf16", (4, 4), [Shard(0), Replicate()], [Replicate(), Shard(1)]
            )

        unseen = iter(range(40, 4096, 4))
        anew = timeit.repeat(
            lambda: ask(next(unseen)), number=1, repeat=20, timer=time.process_time
        )
        ask(4096)
        again = timeit.repeat(
            lambda: ask(4096), number=200, repeat=20, timer=time.process_time
        )
        self.assertLess(min(again) / 200, min(anew) / 50)


class ProgramTest(unittest.TestCase):
    def run_module(self, *arguments):
        return subprocess.run(
            [sys.executable, "-m", "reshard", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    def test_python_m_reshard_is_the_command_line(self):
        found = self.run_module(*"plan --mesh 2 --shape 8 --from S(0) --to R".split())
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.assertIn("f32[8] S(0) on 2 -> R", found.stdout)
        wrong = self.run_module("plan", "--mash")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertTrue(wrong.stderr.startswith("reshard: error: plan: expected no argument"))

    def test_without_a_library_the_import_says_what_to_do(self):
        found = subprocess.run(
            [sys.executable, "-c", "import reshard"],
            env={**os.environ, "RESHARD_LIBRARY": "/nowhere/libreshard.so.0"},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertIn("install the wheel, or set RESHARD_LIBRARY", found.stderr)
