# SPDX-License-Identifier: BSD-3-Clause
"""Jobs: many tensors planned as one, asked about and run by tensor."""

import array
import json
import os
import pathlib
import tempfile
import unittest

import reshard
from every_planner import planners_between_meshes
from reshard import Mesh, Replicate, Shard
from test_execute import run_all

# Of other dtypes, numbers of dims and meshes; the last has no name.
JOB = [
    {"name": "embedding", "shape": (8, 4), "dtype": "i32", "mesh": 4, "source": "S(0)",
     "target": "S(1)"},
    {"name": "layer.0", "shape": (6, 10), "dtype": "f32", "mesh": (2, 2),
     "source": [Shard(0), Replicate()], "target": "RS(1)"},
    {"name": "layer.1", "shape": [6, 10], "dtype": "f32", "mesh": "2x2", "from": "S(0)R",
     "to": "RS(1)"},
    {"name": "bias", "shape": 7, "dtype": "i64", "mesh": 3, "source": "P(sum)", "target": "S(0)"},
    {"name": "head", "shape": (5, 3, 2), "dtype": "u8", "mesh": 2, "source": "R",
     "to_mesh": Mesh((3,), ranks=(2, 3, 4)), "target": "S(1)"},
    {"shape": (), "mesh": 2, "source": "R", "to_mesh": 5, "target": "R"},
]  # fmt: skip
NAMES = [each.get("name", "") for each in JOB]
FORMATS = {"i32": "i", "f32": "f", "i64": "q", "u8": "B"}


def alone(request):
    """The request's own plan."""
    request = {{"from": "source", "to": "target"}.get(k, k): v for k, v in request.items()}
    request.pop("name", None)
    return reshard.plan(planner="p2p", **request)


def zeros(shape, dtype):
    """None if the rank has no such shard."""
    if shape is None:
        return None
    count = 1
    for extent in shape:
        count *= extent
    return array.array(FORMATS[dtype], [0] * count)


def moved_alone():
    """By tensor: sources and what the tensor's own plan makes of them, by rank."""
    for number, request in enumerate(JOB):
        plan = alone(request)
        shapes = {rank: plan.shard_shapes(rank) for rank in plan.ranks}
        sources = {rank: zeros(shape[0], plan.dtype) for rank, shape in shapes.items()}
        destinations = {rank: zeros(shape[1], plan.dtype) for rank, shape in shapes.items()}
        replicas = "R" in plan.tensors[0].request.split(" on ")[0]
        for rank, source in sources.items():
            # On 2x2 the second axis is of replicas.
            holder = (rank // 2 if "2x2" in plan.request else 0) if replicas else rank
            for at in range(len(source or ())):
                source[at] = (50 * number + 16 * holder + at) % 251
        reshard.execute_all(plan, list(sources.values()), list(destinations.values()))
        yield sources, destinations


class JobTest(unittest.TestCase):
    def setUp(self):
        self.plan = reshard.plan_job(JOB)

    def test_a_job_is_what_the_command_line_makes_of_its_file(self):
        lines = [
            {"reshard_trace": 1, "topology": "dgx-a100"},
            {"name": "wq", "shape": [16, 8], "dtype": "bf16", "from": "S(0)", "to": "S(1)",
             "mesh": "4"},
            {"name": "wk", "shape": [16, 8], "dtype": "bf16", "from": "S(0)", "to": "R",
             "mesh": "4", "to_mesh": "tp=2"},
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "job.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            of_file = reshard.plan_job(path)
            self.assertIs(reshard.plan_job(str(path)), of_file)
            self.assertEqual(
                of_file.simulate(),
                json.loads(reshard.command("simulate", "--requests", str(path), "--json")),
            )
            self.assertEqual(of_file.summary(), reshard.command("plan", "--requests", str(path)))
            elsewhere = reshard.plan_job(path, topology="dgx-h100", planner="p2p")
            self.assertIn("dgx-h100", elsewhere.summary())
            path.write_text("".join(json.dumps(line) + "\n" for line in lines[:2]))
            self.assertEqual(reshard.plan_job(path).tensor_count, 1)
        self.assertEqual([tensor.name for tensor in of_file.tensors], ["wq", "wk"])
        self.assertIn("dgx-a100", of_file.summary())
        self.assertEqual(of_file.time_ps, of_file.simulate("proof")["time_ps"])
        self.assertEqual(of_file.bound_ps, of_file.simulate("proof")["bound"]["time_ps"])
        of_lines = reshard.plan_job(lines[1:], topology="dgx-a100")
        self.assertEqual(of_lines.to_text(), of_file.to_text())
        self.assertEqual(of_lines.fingerprint, of_file.fingerprint)

    def test_each_tensor_is_asked_for_by_number_or_name(self):
        plan = self.plan
        self.assertEqual(plan.tensor_count, 6)
        self.assertEqual([tensor.name for tensor in plan.tensors], NAMES)
        self.assertEqual(plan.tensors[4].shape, (5, 3, 2))
        self.assertEqual(plan.tensors[3].dtype, "i64")
        self.assertEqual(plan.tensors[1].request, "f32[6,10] S(0)R on 2x2 -> RS(1)")
        self.assertEqual(plan.tensors[5].shape, ())
        self.assertEqual(plan.ranks, [0, 1, 2, 3, 4])
        for number, request in enumerate(JOB):
            own = alone(request)
            for rank in plan.ranks:
                expected = own.shard_shapes(rank) if rank in own.ranks else (None, None)
                self.assertEqual(plan.shard_shapes(rank, number), expected)
                if NAMES[number]:
                    self.assertEqual(plan.shard_shapes(rank, NAMES[number]), expected)
        for tensor, said in (
            (None, "tensor: expected a number or a name, as the plan has 6, found None"),
            (6, "tensor: expected a number from 0 to 5, found 6"),
            (-1, "tensor: expected a number from 0 to 5, found -1"),
            ("layer", "tensor: expected the name of one of 6, found 'layer', which none"),
            ("", "which none of them have"),
            (1.5, "tensor: expected a whole number"),
        ):
            with self.assertRaisesRegex(reshard.InputError, said):
                plan.shard_shapes(0, tensor)
        with self.assertRaisesRegex(reshard.InputError, "of i32 and f32 and i64 and u8"):
            plan.dtype  # noqa: B018
        self.assertEqual(reshard.plan_job(JOB[1:3]).dtype, "f32")
        self.assertIn("and 2 more", repr(plan))
        self.assertIn("layer.0: tensor 1, f32[6,10]", plan.summary())
        self.assertTrue(plan.simulate()["data"]["checked"])
        self.assertIn("layer.0: tensor 1, f32[6,10]", plan.to_html())

    def test_equal_jobs_are_planned_once(self):
        by_name = {each["name"]: each for each in JOB[:5]}
        self.assertIs(reshard.plan_job(iter(JOB)), self.plan)
        of_dict = reshard.plan_job(by_name)
        self.assertEqual(of_dict.to_text(), reshard.plan_job(JOB[:5]).to_text())
        self.assertEqual([tensor.name for tensor in of_dict.tensors], NAMES[:5])
        bare = reshard.plan_job({"w": ((8, 4), "i32", 4, "S(0)", "S(1)")}, planner="p2p")
        self.assertEqual(bare.tensors[0].name, "w")
        self.assertEqual(bare.to_text(), alone(JOB[0]).to_text())

    def test_jobs_that_differ_somewhere_have_other_fingerprints(self):
        one = {"shape": (8, 8), "mesh": 4, "source": "S(0)", "target": "S(1)"}
        other = {**one, "source": "S(1)", "target": "S(0)"}
        prints = {
            reshard.plan_job(jobs, planner="p2p").fingerprint
            for jobs in ([one] * 6, [one] * 5 + [other], [one] * 4 + [other, one])
        }
        self.assertEqual(len(prints), 3)

    def test_all_ranks_at_once(self):
        expected = list(moved_alone())
        for planner in planners_between_meshes():
            plan = reshard.plan_job(JOB, planner=planner)
            # For even ranks lists, for odd ones dicts without what they do not have.
            sources, destinations = [], []
            for rank in plan.ranks:
                given = [each[0].get(rank) for each in expected]
                taken = [
                    zeros(plan.shard_shapes(rank, number)[1], tensor.dtype)
                    for number, tensor in enumerate(plan.tensors)
                ]
                sources.append(self.by_name(given) if rank % 2 else given)
                destinations.append(self.by_name(taken) if rank % 2 else taken)
            reshard.execute_all(plan, sources, destinations)
            self.assert_moved(plan, destinations, expected)

    def test_every_rank_over_a_transport(self):
        expected = list(moved_alone())
        sources = [[each[0].get(rank) for each in expected] for rank in self.plan.ranks]
        destinations = [
            self.by_name(
                zeros(self.plan.shard_shapes(rank, number)[1], tensor.dtype)
                for number, tensor in enumerate(self.plan.tensors)
            )
            for rank in self.plan.ranks
        ]
        run_all(self.plan, sources, destinations)
        self.assert_moved(self.plan, destinations, expected)

    @staticmethod
    def by_name(arrays):
        """The last tensor, which has no name, by its number."""
        names = [*NAMES[:5], 5]
        return {name: each for name, each in zip(names, arrays) if each is not None}

    def assert_moved(self, plan, destinations, expected):
        for rank, found in zip(plan.ranks, destinations):
            if isinstance(found, dict):
                found = [found.get(name) for name in [*NAMES[:5], 5]]
            self.assertEqual(found, [each[1].get(rank) for each in expected], f"rank {rank}")

    def test_operations_name_the_buffers_of_tensors(self):
        plan = reshard.plan_job(JOB, planner="p2p")
        program = plan.operations(3)
        seen = set()
        for operation in program.operations:
            for source, destination in operation.moves:
                seen |= {source.buffer, destination.buffer}
            for message in (*operation.sends, *operation.receives):
                seen |= {box.buffer for box in message.boxes}
        self.assertTrue(seen >= {0, 1, 2, 3, 4, 5, 9, 11}, seen)
        self.assertTrue(all(buffer >= 12 for buffer in program.temporaries))


class ErrorTest(unittest.TestCase):
    def refused(self, said, requests, **options):
        with self.assertRaises(reshard.InputError) as caught:
            reshard.plan_job(requests, **options)
        self.assertIn(said, str(caught.exception))

    def spoilt(self, said, spoil, **fields):
        """A job whose request 3 is wrong."""
        requests = [dict(each) for each in JOB]
        requests[3].update(fields)
        for field in spoil.split():
            del requests[3][field]
        self.refused(said, requests)

    def test_a_job_without_requests(self):
        self.refused("requests: expected at least one, found none", [])
        self.refused("requests: expected at least one, found none", {})
        for what in (None, 7, b"job", object()):
            self.refused("requests: expected a list of requests, a dict of them by name or", what)

    def test_the_request_at_fault_is_named(self):
        self.spoilt("requests[3].dtype: expected one of f64 f32", "", dtype="f33")
        self.spoilt("requests[3].shape: expected whole numbers, found None", "shape")
        self.spoilt("requests[3].shape: expected", "", shape=(4.5,))
        self.spoilt("requests[3].mesh: expected a mesh, found None", "mesh")
        self.spoilt("requests[3].target: expected placements, found None", "target")
        self.spoilt("requests[3].to: expected a tensor dim", "", target="S(3)")
        self.spoilt("requests[3].placement: expected Shard", "", target=[7])
        self.spoilt("requests[3]: axis 0: P(sum)->P(max) is forbidden", "", target="P(max)")
        self.spoilt("requests[3]: R->P(sum) is forbidden for i64", "", source="R", target="P(sum)")
        self.spoilt("requests[3].name: expected a string, found 7", "", name=7)
        self.spoilt("requests[3].name: expected a string without NUL", "", name="a\0b")
        self.spoilt("requests[3].name: expected UTF-8 text, found 'a\\xff'", "", name="a\udcff")
        self.spoilt("requests[3]: expected fields among shape, dtype, mesh", "", dtpye="f32")
        self.spoilt("requests[3]: expected one of source and from, found both", "", **{"from": "R"})
        self.spoilt("requests[3].planner: expected it for the whole job", "", planner="p2p")
        self.refused("requests[1]: expected a dict of the arguments of reshard.plan", [JOB[0], 7])
        self.refused("requests[1]: expected a dict of the arguments of reshard.plan", [JOB[0], ()])
        self.refused("requests[0].to: expected", [((8,), "f32", 2, "R", "S(1)")])
        self.refused("requests['w'].dtype: expected", {"w": ((8,), "f3", 2, "R", "R")})
        self.refused("requests['w'].name: expected 'w', found 'bias'", {"w": JOB[3]})
        self.refused("requests[7].name: expected a string, found 7", {7: JOB[5]})

    def test_the_job_at_fault(self):
        self.refused("memory limit: expected at least", JOB, memory_limit=100)
        self.refused("planner rule: expected one mesh on both sides", JOB, planner="rule")
        self.refused("fastest", JOB, planner="fastest")
        self.refused("planner: expected a string", JOB, planner=7)
        self.refused("/nowhere/job.jsonl: expected a file of requests", "/nowhere/job.jsonl")
        self.refused("requests: expected a string without NUL", "a\0b")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"shape": [4], "dtype": "f33", "from": "R", "to": "R", "mesh": "2"}\n')
            self.refused(f"{path}:1: dtype", path)
            self.refused(folder, folder)

    def test_shards_that_do_not_fit_are_named(self):
        plan = reshard.plan_job(JOB[:3], planner="p2p")
        good = [array.array("i", [0] * 8), *(array.array("f", [0] * 30) for _ in range(2))]

        def refused(said, source, destination=good):
            with self.assertRaises(reshard.InputError) as caught:
                reshard.execute(plan, 0, source, destination, None)
            self.assertIn(said, str(caught.exception))

        refused("source: expected a list of 3 arrays, one per tensor, or a dict", good[0])
        refused("source: expected 3 arrays, one per tensor, found 2", good[:2])
        refused("destination: expected 3 arrays", good, [])
        refused("source: tensor: expected the name of one of 3, found 'wq'", {"wq": good[0]})
        refused("source: expected one array for 0, found two", {"embedding": good[0], 0: good[0]})
        refused("source['layer.0']: expected f32", {"layer.0": good[0]})
        refused("source[1]: expected None or an array", [good[0], 7, good[2]])
        refused("source_bytes of tensor 0 'embedding': expected 32", None)
        refused("source_bytes of tensor 1 'layer.0': expected 120", {"embedding": good[0]})
        with self.assertRaisesRegex(reshard.InputError, r"sources\[1\]: tensor: expected the name"):
            reshard.execute_all(plan, [good, {"wq": good[0]}, good, good], [good] * 4)
        with self.assertRaisesRegex(reshard.InputError, "count: expected 12, shards of 3 tensors"):
            reshard.execute_all(plan, [good], [good])
