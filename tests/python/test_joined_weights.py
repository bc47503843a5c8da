# SPDX-License-Identifier: BSD-3-Clause
"""Digests of a model from a checkpoint that joins its tensors as its family's files do: they are
those from a file that has each of them by itself."""

import itertools
import json
import math
import pathlib
import random
import struct
import tempfile
import unittest

import reshard

SIZES = {
    "num_hidden_layers": 1, "hidden_size": 8, "vocab_size": 16, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 2, "intermediate_size": 6, "num_local_experts": 3,
    "torch_dtype": "bfloat16",
}  # fmt: skip
LAYER = "model.layers.0."


class Tensor:
    """bf16 elements by index, row-major."""

    def __init__(self, shape, values):
        self.shape, self.values = list(shape), values

    def at(self, index):
        number = 0
        for i, extent in zip(index, self.shape):
            number = number * extent + i
        return self.values[number]


def made(shape, element):
    """Of element(index)."""
    return Tensor(shape, [element(at) for at in itertools.product(*map(range, shape))])


def write(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(tensor.values)}H", *tensor.values)
        header[name] = {"dtype": "BF16", "shape": tensor.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def rows_of(*tensors):
    return Tensor([sum(of.shape[0] for of in tensors), *tensors[0].shape[1:]],
                  [value for of in tensors for value in of.values])  # fmt: skip


def phi3_files(apart):
    out = dict(apart)
    attention, mlp = LAYER + "self_attn.", LAYER + "mlp."
    parts = [out.pop(f"{attention}{x}_proj.weight") for x in "qkv"]
    out[attention + "qkv_proj.weight"] = rows_of(*parts)
    parts = [out.pop(f"{mlp}{x}_proj.weight") for x in ("gate", "up")]
    out[mlp + "gate_up_proj.weight"] = rows_of(*parts)
    return out


def gpt_oss_files(apart):
    """Gate and up rows in turn; matrices transposed."""
    out = dict(apart)
    experts = LAYER + "mlp.experts."
    for kind, suffix in (("weight", ""), ("bias", "_bias")):
        gate, up, down = (out.pop(f"{experts}{x}_proj.{kind}") for x in ("gate", "up", "down"))

        def in_turn(e, row, *more, gate=gate, up=up):
            return (up if row % 2 else gate).at((e, row // 2, *more))

        count, rows, *columns = gate.shape
        if columns:
            joined = made([count, *columns, 2 * rows], lambda i: in_turn(i[0], i[2], i[1]))
            down = made([count, rows, *columns], lambda i, of=down: of.at((i[0], i[2], i[1])))
        else:
            joined = made([count, 2 * rows], lambda i: in_turn(*i))
        out[f"{experts}gate_up_proj{suffix}"] = joined
        out[f"{experts}down_proj{suffix}"] = down
    return out


class JoinedWeightsTest(unittest.TestCase):
    def compared(self, family, files_of):
        draw = random.Random(family)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            config = folder / "config.json"
            config.write_text(json.dumps({"model_type": family, **SIZES}))
            roles = json.loads(reshard.command("model", str(config), "--roles", "--json"))
            apart = {}
            for weight in roles["weights"]:
                numbers = [draw.randrange(1 << 16) for _ in range(math.prod(weight["shape"]))]
                apart[weight["name"].replace("*", "0")] = Tensor(weight["shape"], numbers)
            write(folder / "apart.safetensors", apart)
            write(folder / "model.safetensors", files_of(apart))
            for side in ("vllm tp=2", "megatron tp=2", "fsdp2 dp=3", "hf tp=3", "zero3 dp=2"):
                of_both = [
                    reshard.command("model", str(source), "--from", "whole", "--to", side,
                                    "--digests", "--weights", str(weights))
                    for source, weights in ((config, folder / "apart.safetensors"),
                                            (config, folder / "model.safetensors"),
                                            (folder, folder))
                ]  # fmt: skip
                self.assertEqual(of_both[0], of_both[1])
                self.assertEqual(of_both[0], of_both[2])
            with self.assertRaisesRegex(reshard.InputError, r"_proj.*: expected \[.*, found \["):
                other = files_of(apart)
                for tensor in other.values():
                    tensor.shape = tensor.shape[::-1]
                write(folder / "other.safetensors", other)
                sides = ("--from", "whole", "--to", "whole")
                weights = str(folder / "other.safetensors")
                reshard.command("model", str(config), *sides, "--digests", "--weights", weights)

    def test_phi3(self):
        self.compared("phi3", phi3_files)

    def test_gpt_oss(self):
        self.compared("gpt_oss", gpt_oss_files)
