# SPDX-License-Identifier: BSD-3-Clause
"""The program's file of a job (docs/check.md), as a user writes it: meshes, placements, fused
blocks and maps; parts only for what nothing else says, which `Lines.by_parts` counts."""

import json

from models.model import SCALE


class Lines:
    def __init__(self, job):
        self.job, self.model = job, job.model
        self.lines, self.scales, self.by_parts = [], {}, []
        self.padded = {"from": set(), "to": set()}  # names of buffers that are alike on all ranks

    def text(self):
        out = [{"reshard_check": 1}, *self.model.lines()]
        for which, side in zip(self.job.sides(), ("from", "to")):
            self.begin(which, side)
            place = getattr(self.job, which)
            from models import file_serving, file_training

            module = file_training if which == "training" else file_serving
            module.write(self, place)
            self.lines += self.scales.values()
            out += self.lines
        return "".join(json.dumps(line) + "\n" for line in out)

    def begin(self, which, side):
        self.side, self.lines, self.scales = side, [], {}
        self.f32 = self.job.converted == which
        self.alike = getattr(getattr(self.job, which), "pad_alike", False)

    def put(self, name, where, blocks, placements="", scaled=False, **more):
        """A buffer of one or more blocks on (mesh, ranks)."""
        mesh, ranks = where
        line = {"side": self.side, "buffer": name, "mesh": mesh, "ranks": ranks}
        if isinstance(blocks, str):
            line["tensor"] = blocks
        else:
            line["fused"] = blocks
        if placements:
            line["placements"] = placements
        line |= {key: value for key, value in more.items() if value}
        self.finish(name, line, scaled)

    def put_parts(self, name, rank, shape, parts, dtype="bf16"):
        self.by_parts.append(name)
        line = {"side": self.side, "buffer": name, "ranks": str(rank), "shape": shape,
                "dtype": dtype, "parts": parts}
        self.finish(name, line, False)

    def finish(self, name, line, scaled):
        first = str(line.get("tensor") or line.get("flat") or line.get("fused") or line["parts"])
        if self.alike and "parts" not in line and self.rows_alone_uneven(first):
            line["pad"] = "alike"
            self.padded[self.side].add(name)
        if self.f32 and "e_score" not in first and SCALE not in first:
            line |= {"dtype": "f32", "convert": True}
        self.lines.append(line)
        if scaled and self.model.fp8:
            self.scales[name] = {"side": self.side, "buffer": name + SCALE, "scales_of": name}

    def rows_alone_uneven(self, tensor):
        """FSDP2 pads rows; "alike" pads columns too, which tp may have cut unevenly."""
        of = self.model.tensors.get(tensor)
        return not of or len(of["shape"]) == 1 or of["shape"][-1] % self.job.training.tp == 0


def ranks_text(ranks):
    return ",".join(str(rank) for rank in ranks)
