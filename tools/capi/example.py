#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The C API from Python, with nothing but the standard library: plans a redistribution and prints
what one rank does.

python3 example.py [--library libreshard.so.0] [--rank 1]
"""

import argparse
import ctypes as c
import sys

MAX_DIMS = 8
KINDS = [
    "copy",
    "fill",
    "exchange",
    "reduce",
    "all_gather",
    "reduce_scatter",
    "all_reduce",
    "all_to_all",
]
EXCHANGE = 2


class Struct(c.Structure):
    """Every struct begins with its size, so that the library and its caller may be of different
    versions."""

    def __init__(self, **fields):
        super().__init__(struct_size=c.sizeof(type(self)), **fields)


def struct(name, *fields):
    return type(name, (Struct,), {"_fields_": [("struct_size", c.c_uint32), *fields]})


Texts = struct(
    "Texts",
    ("reserved", c.c_uint32),
    *(
        (name, c.c_char_p)
        for name in ("mesh", "ranks", "to_mesh", "to_ranks", "shape", "dtype", "from_", "to")
    ),
)
PlanOptions = struct(
    "PlanOptions",
    ("reserved", c.c_uint32),
    ("planner", c.c_char_p),
    ("memory_limit_bytes", c.c_int64),
)
Facts = struct(
    "Facts",
    *(
        (name, c.c_int32)
        for name in ("rank_count", "buffer_count", "step_count", "dims", "element_bytes")
    ),
    *(
        (name, c.c_int64)
        for name in (
            "peak_bytes_max",
            "received_bytes_max",
            "received_bytes_total",
            "padding_bytes_total",
        )
    ),
)
ProgramFacts = struct(
    "ProgramFacts",
    *(
        (name, c.c_int32)
        for name in ("rank", "operation_count", "buffer_count", "dims", "element_bytes")
    ),
    ("arena_bytes", c.c_int64),
)
Operation = struct(
    "Operation",
    *((name, c.c_int32) for name in ("kind", "step", "part_count", "after_count", "reduce_op")),
    ("divisor", c.c_int64),
    ("after", c.POINTER(c.c_int32)),
    ("group", c.POINTER(c.c_int32)),
    *((name, c.c_int32) for name in ("group_size", "member", "input", "output")),
    ("input_bytes", c.c_int64),
    ("output_bytes", c.c_int64),
)
Message = struct(
    "Message",
    *((name, c.c_int32) for name in ("receives", "peer", "move_count")),
    ("bytes", c.c_int64),
)
Move = struct(
    "Move",
    *((name, c.c_int32) for name in ("source", "destination", "reserved")),
    *((name, c.c_int64 * MAX_DIMS) for name in ("source_offset", "destination_offset", "extents")),
)


class Reshard:
    def __init__(self, library):
        try:
            self.library = c.CDLL(library)
        except OSError as error:
            sys.exit(
                f"example.py: cannot load {library}: {error}; give --library PATH, such as "
                "build/release/libreshard.so.0"
            )
        self.library.reshard_last_error.restype = c.c_char_p
        self.library.reshard_plan_request.restype = self.library.reshard_plan_planner.restype = (
            c.c_char_p
        )

    def call(self, name, *arguments):
        if getattr(self.library, "reshard_" + name)(*arguments) != 0:
            raise ValueError(self.library.reshard_last_error().decode())

    def made(self, name, *arguments):
        handle = c.c_void_p()
        self.call(name, *arguments, c.byref(handle))
        return handle

    def asked(self, name, result, *arguments):
        self.call(name, *arguments, c.byref(result))
        return result


def box_text(offset, extents, dims):
    return "[" + ",".join(f"{offset[d]}:{offset[d] + extents[d]}" for d in range(dims)) + "]"


def moves(reshard, program, operation, message, count, dims):
    for i in range(count):
        move = reshard.asked("program_get_move", Move(), program, operation, message, i)
        yield (
            f"b{move.source}{box_text(move.source_offset, move.extents, dims)} -> "
            f"b{move.destination}{box_text(move.destination_offset, move.extents, dims)}"
        )


def lines_of(reshard, program, index, dims):
    operation = reshard.asked("program_get_operation", Operation(), program, index)
    after = ",".join(str(operation.after[i]) for i in range(operation.after_count))
    yield f"{index}  {KINDS[operation.kind]}" + (f" after {after}" if after else "")
    if operation.group_size > 0:
        group = ",".join(str(operation.group[i]) for i in range(operation.group_size))
        yield (
            f"     b{operation.input} -> b{operation.output}, {operation.output_bytes} B, "
            f"member {operation.member} of {group}"
        )
    elif operation.kind == 0:
        yield from (
            "     " + text for text in moves(reshard, program, index, 0, operation.part_count, dims)
        )
    elif operation.kind == EXCHANGE:
        for number in range(operation.part_count):
            message = reshard.asked("program_get_message", Message(), program, index, number)
            way = "from" if message.receives else "to"
            yield f"     {way} rank {message.peer}: {message.bytes} B"
            yield from (
                "       " + text
                for text in moves(reshard, program, index, number, message.move_count, dims)
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default="libreshard.so.0")
    parser.add_argument("--rank", type=int, default=1)
    arguments = parser.parse_args()
    reshard = Reshard(arguments.library)

    request = reshard.made(
        "request_create",
        c.byref(Texts(mesh=b"4", shape=b"10,6", dtype=b"bf16", from_=b"S(0)", to=b"S(1)")),
    )
    options = PlanOptions(planner=b"p2p")
    plan = reshard.made("plan_create", request, None, c.byref(options))
    facts = reshard.asked("plan_get_facts", Facts(), plan)
    print(
        f"{reshard.library.reshard_plan_request(plan).decode()} "
        f"by {reshard.library.reshard_plan_planner(plan).decode()}: "
        f"{facts.received_bytes_total} B received, peak {facts.peak_bytes_max} B"
    )
    program = reshard.made("program_create", plan, arguments.rank, c.c_int64(0))
    ours = reshard.asked("program_get_facts", ProgramFacts(), program)
    print(
        f"rank {ours.rank}: {ours.operation_count} operations, {ours.arena_bytes} B of temporaries"
    )
    for index in range(ours.operation_count):
        print("\n".join(lines_of(reshard, program, index, ours.dims)))
    reshard.library.reshard_program_free(program)
    reshard.library.reshard_plan_free(plan)
    reshard.library.reshard_request_free(request)


if __name__ == "__main__":
    main()
