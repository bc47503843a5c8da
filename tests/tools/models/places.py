# SPDX-License-Identifier: BSD-3-Clause
"""Which rank has which coordinates, and which layers: the rules of each framework."""


class Place:
    """How a model is laid on ranks: fields by name, among them `first_rank` and `ranks`."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def but(self, **fields):
        """The same with some fields exchanged: what somebody believes wrongly."""
        return type(self)(**{**self.__dict__, **fields})

    def layers_of(self, stage):
        return list(range(sum(self.split[:stage]), sum(self.split[: stage + 1])))


class Megatron(Place):
    """Order tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp (`dp_outermost`)."""

    def stage(self, rank):
        rank -= self.first_rank
        if self.dp_outermost:
            return rank // (self.tp * self.cp) % self.pp
        return rank // (self.tp * self.cp * self.dp)

    def tp_rank(self, rank):
        rank -= self.first_rank
        return rank // self.dp % self.tp if self.dp_fastest else rank % self.tp

    def expert_coordinates(self, rank):
        """(ep, etp) on the expert grid of the same ranks."""
        rank -= self.first_rank
        if self.ep_fastest:
            return rank % self.ep, rank // self.ep % self.etp
        return rank // self.etp % self.ep, rank % self.etp

    def chunks(self, stage):
        """Layers of each chunk of a stage: all stages' chunks 0 come first."""
        if self.vpp == 1:
            return [[(layer + self.layer_shift) % sum(self.split)
                     for layer in self.layers_of(stage)]]
        each = self.split[0] // self.vpp
        return [[(c * self.pp + stage) * each + i for i in range(each)] for c in range(self.vpp)]


class Vllm(Place):
    """Ranks dp, pp, tp; experts over dp x tp of a stage."""

    latents = "fused_qkv_a_proj"

    def has_whole_shared(self, model):
        """Where tokens are split over tp, DeepSeek's shared experts are not."""
        return model.mla and self.ep_on and self.tp > 1 and self.dp > 1

    def stage(self, rank):
        return (rank - self.first_rank) // self.tp % self.pp

    def attention(self, rank):
        """(rank, size) of attention's tensor parallelism."""
        return (rank - self.first_rank) % self.tp, self.tp

    def dense(self, rank):
        return self.attention(rank)

    def expert(self, rank):
        """(ep rank, ep size, tp rank, tp size) of the experts."""
        rank -= self.first_rank
        in_stage = rank // (self.tp * self.pp) * self.tp + rank % self.tp
        size = self.dp * self.tp
        return (in_stage, size, 0, 1) if self.ep_on else (0, 1, in_stage, size)


class Sglang(Place):
    """Ranks pp, tp; attention's dp and the experts' ep divide tp."""

    latents = "fused_qkv_a_proj_with_mqa"

    def has_whole_shared(self, model):
        return False

    def stage(self, rank):
        return (rank - self.first_rank) // self.tp

    def attention(self, rank):
        size = self.tp // self.dp
        return (rank - self.first_rank) % self.tp % size, size

    def dense(self, rank):
        return (rank - self.first_rank) % self.tp, self.tp

    def expert(self, rank):
        moe_tp = self.tp // self.ep // self.moe_dp
        tp_rank = (rank - self.first_rank) % self.tp
        return tp_rank // moe_tp % self.ep, self.ep, tp_rank % moe_tp, moe_tp


class Fsdp(Place):
    """Mesh [replicate, shard, tp]; tp is fastest."""

    def coordinates(self, rank):
        rank -= self.first_rank
        return rank // self.tp % self.shard, rank % self.tp


def vllm_split(layers, n):
    out = [layers // n] * n
    for i in range(layers % n):
        out[n - 2 - i] += 1
    return out


def sglang_split(layers, n):
    return [layers // n + (i >= n - layers % n) for i in range(n)]


def megatron_splits(layers, n):
    """All that its options allow: even, own numbers for the first and the last stage, embedding and
    loss counted as layers."""
    out = []
    for first in range(layers + 1):
        for last in range(layers + 1):
            ends = [first] * (first > 0) + [last] * (last > 0)
            rest = layers - sum(ends)
            if n == 1 or n < len(ends):
                continue
            middle = n - len(ends)
            if rest < 0 or (middle == 0 and rest > 0) or (middle > 0 and rest % middle != 0):
                continue
            each = [rest // middle] * middle if middle else []
            out.append([first] * (first > 0) + each + [last] * (last > 0))
    for counted in ((1, 0), (0, 1), (1, 1)):
        if n > 1 and (layers + sum(counted)) % n == 0:
            each = [(layers + sum(counted)) // n] * n
            each[0] -= counted[0]
            each[-1] -= counted[1]
            out.append(each)
    return [[layers]] if n == 1 else [split for split in out if min(split) > 0]
