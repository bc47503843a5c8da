# SPDX-License-Identifier: BSD-3-Clause
"""The ReshardPlans of Megatron-Core (megatron/core/resharding) as lines of copies. A plan has the
operations of one rank. A send meets the receive at the same place in the order of its pair of
ranks, as NCCL joins them; the ids of their tasks must agree, as NVSHMEM goes by them. `my_slice` of
both ends is what is moved; Megatron does not use `peer_slice` either."""

import sys

from ._records import InputError, Record, by_rank, each_of, list_of, main, refuse, whole


def _box(value, where):
    ends = []
    for place, each in each_of(value, where):
        each = [each.start, each.stop, each.step] if isinstance(each, slice) else each
        if not isinstance(each, (list, tuple)) or len(each) not in (2, 3):
            refuse(place, "a slice such as [0, 4, null]", each)
        lo, hi, step = [*each, None][:3]
        if step not in (None, 1):
            refuse(place, "a slice without a step", each)
        start = whole(0 if lo is None else lo, place)
        whole_dim = lo is None and hi is None
        ends.append(":" if whole_dim else f"{start}:{whole(hi, place, start + 1)}")
    return {"box": ",".join(ends)} if ends else {}


_OPERATION = Record("param_name:text peer_rank:whole is_send:any peer_slice? task_id?:any "
                    "batch_id?:any", my_slice=_box)  # fmt: skip
_PLAN = Record("transform?:none buffer_dtypes? tensor_reshard_specs? tensor_reshard_error? "
               "num_batches? total_tasks? execution_batch_bytes?",
               send_ops=list_of(_OPERATION), recv_ops=list_of(_OPERATION))  # fmt: skip


def copies(plans):
    """The lines of copies. plans: those of all ranks, a list or a dict by rank."""
    plans, pairs = by_rank(_PLAN)(plans, "plans"), {}
    for rank, plan in plans.items():
        for place, is_send in (("send_ops", True), ("recv_ops", False)):
            for i, each in enumerate(plan[place]):
                where, peer = f"plans[{rank}].{place}[{i}]", each["peer_rank"]
                if each["is_send"] is not is_send:
                    refuse(f"{where}.is_send", is_send, each["is_send"])
                if peer not in plans:
                    refuse(f"{where}.peer_rank", "a rank that has a plan", peer)
                ids = [each.get("task_id"), each.get("batch_id", 0)]
                end = {"rank": rank, "buffer": each["param_name"], **each["my_slice"]}
                both = pairs.setdefault((rank, peer) if is_send else (peer, rank), ([], []))
                both[not is_send].append((ids, where, end))
    for (source, destination), (sends, receives) in pairs.items():
        if len(sends) != len(receives):
            raise InputError(f"plans: rank {source} sends {len(sends)} times to rank {destination},"
                             f" which receives {len(receives)} times from it")  # fmt: skip
        for (ids, _, sent), (others, where, received) in zip(sends, receives):
            if ids != others:
                refuse(where, f"task and batch {ids}, as the send that it meets has", others)
            yield {"from": sent, "to": received}


if __name__ == "__main__":
    sys.exit(main("megatron", copies))
