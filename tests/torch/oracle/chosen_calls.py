# SPDX-License-Identifier: BSD-3-Clause
"""Calls chosen one by one, written as in calls.py. RULES showed what PyTorch's rules are, refusals
included. No row leads to those in SPECIAL: loss parallel, and inputs that only other operators
make, such as masked and norm partials and the strided shards of views."""

import itertools

BACK = {"num_weights": 32, "padding_idx": -1, "scale_grad_by_freq": False}
LOGITS = {"4": "S1 R S0 P", "2x2": "S0S1 RS1 S1R S1S1 RR S1S0 S0R"}
STRIDED = {
    "4": "_S(0,2) _S(0,4) _S(0,1) _S(1,2)",
    "2x2": "S0_S(0,4) R_S(0,2) _S(0,2)S0 _S(0,4)R S1_S(0,2) _S(0,2)_S(1,4)",
}


def at(shapes, *placements):
    """Texts of tensors of these shapes, one for each word of placements "S0,R"."""
    for where in placements:
        yield " ".join(f"{s}@{p}" for s, p in zip(shapes.split(), where.split(",")))


def matmuls(call):
    call("mm", *(f"64x32@{a} 32x48@{b}" for a in "R S0 S1 P".split() for b in "R S0 S1 P".split()))
    call("mm", *at("4096x4096 4096x4096", "S0,S0", "P,S0"))
    call("mm", *at("64x32 32x48", "S0S1,S1S0", "PavgR,S0R", "S0S1,S0S1"), mesh="2x2")
    call("mm", "6x7@S1 7x3@S0", "3x8@S0 8x12@R", "3x8@S0S0 8x12@RR mesh=2x2")
    call("addmm", *at("48 64x32 32x48", "R,S1,S0", "R,R,S1", "R,P,R", "S0,S0,R"),
         "48@RR 64x32@S0S1 32x48@RS0 mesh=2x2")
    call("bmm", *at("8x16x32 8x32x12", "S0,R", "S0,S2"))
    call("baddbmm", "16x12@R 8x16x32@S2 8x32x12@S1")


def pointwise(call):
    pair = "16x8 16x8"
    call("add.Tensor", *at(pair, "P,R", "Pavg,R", "R,Pmax", "S0,S1", "S0,P", "P,Pavg"))
    call("mul.Tensor", *at(pair, "P,P", "P,S0"))
    call("div.Tensor sub.Tensor: 16x8@R 16x8@P", "maximum: 16x8@P 16x8@P", "relu: 16x8@P",
         "neg: 16x8@Pmax", "empty_like: 16x8@P", "fill_.Scalar: 16x8@P value=1.0",
         "add.Scalar: 16x8@P other=3.0", "mul.Scalar: 16x8@Pmax other=3.0",
         "_to_copy: 16x8@P dtype=i32", "add.Tensor: 16x8@S0 8@S0",
         "mul.Tensor: 16x8@S0P 8@RR mesh=2x2", "relu: 3x5@S0",
         "add.Tensor: 3x5@S0 3x5@R | 16x8@_S(0,2)S0 16x8@S0S0 mesh=2x2",
         "where.self: b8.16x8@R 16x8@S0 16x8@P")
    call("add_.Tensor", *at(pair, "S0,R", "R,S0", "P,R"))
    call("relu_", "16x8@P")


def reductions(call):
    call("sum.dim_IntList: 16x8@S0 dim=[0]", "sum: 16x8@Pavg",
         "mean.dim: 16x8@S0 dim=[0] | 7x8@S0 dim=[0]", "mean: 16x8@P", "max.dim: 16x8@S0 dim=0",
         "amax: 16x8@P dim=[1]", "linalg_vector_norm: 16x8@S0 | 16x8@P",
         "var.correction: 16x8@S0 dim=[0]", "cumsum: 16x8@S0 dim=0", "argmax: 16x8@S0",
         "sum.dim_IntList: 16x8@S0S1 dim=[0] mesh=2x2", "mean.dim: 6x8@S0S0 dim=[0] mesh=2x2",
         "linalg_vector_norm: 16x8@S0S1 mesh=2x2", "max: 16x8@S0P mesh=2x2")


def norms(call):
    last = {"normalized_shape": [16]}
    call("_softmax", "4x8x16@S2", dim=-1, half_to_float=False)
    call("_softmax_backward_data", "4x8x16@S1 4x8x16@S0", dim=2, input_dtype="f32")
    call("native_layer_norm", *at("4x8x16 16 16", "S2,R,R", "S1,S0,R"), **last, eps=1e-5)
    call("native_layer_norm_backward", "4x8x16@P 4x8x16@S1 4x8x1@S1 4x8x1@S1 16@R 16@R", **last,
         output_mask=[True, True, True])
    call("_fused_rms_norm", "4x8x16@S2 16@S0", **last, eps=1e-5)
    call("native_group_norm", "4x8x6x6@S0 8@R 8@R", N=4, C=8, HxW=36, group=2, eps=1e-5)


def embeddings_attention_losses(call):
    tables = "32x12 i64.4x6<32"
    call("embedding", *at(tables, "S0,R", "S0,S0", "P,R"))
    call("embedding", *at(tables, "RS0,S0R", "S0S0,RR"), mesh="2x2")
    call("embedding_dense_backward", *at("4x6x12 i64.4x6<32", "S0,S0", "S1,R"), **BACK)
    qkv = "bf16.4x8x16x32 bf16.4x8x16x32 bf16.4x8x16x32"
    call("_scaled_dot_product_flash_attention", *at(qkv, "S2,S2,S2", "S1,R,R"), dropout_p=0.0,
         is_causal=True)
    call("_scaled_dot_product_efficient_attention", *at(qkv + " bf16.1x8x16x16", "S0,S0,S0,R"),
         compute_log_sumexp=True)
    call("nll_loss_forward", "16x12@S0 i64.16<12@S0 - reduction=1",
         "16x12@S0 i64.16<12@S0 - reduction=2", "16x12@S1 i64.16<12@R - reduction=2",
         ignore_index=-100)
    call("nll_loss_backward", ".@R 16x12@S0 i64.16<12@S0 - .@P", reduction=2, ignore_index=-100)


def views(call):
    call("view", "4x8x16@S1 size=[32,16]", "4x8x16@S2 size=[32,16]", "32x16@S0 size=[2,16,16]",
         "5x8@S0 size=[40]", "8x5@S1 size=[40]", "8x8@S0S1 size=[64] mesh=2x2",
         "2x8x32@S2 size=[2,8,4,8]", "2x8x32@S2 size=[2,8,2,16]", "2x8x4x8@S3 size=[2,8,32]",
         "12x8@S0 size=[8,12]", "4x8x16@S0S1 size=[32,16] mesh=2x2",
         "8x16@_S(0,2) size=[2,4,16]", "8x16@_S(0,2)~ size=[2,4,16]")
    call("view_copy: 32x16@S0 size=[2,16,16] | 4x8x16@S1 size=[32,16] | 3x8@S0 size=[8,3] mesh=3",
         "squeeze.dim: 1x8@S0 dim=0", "repeat: 8x4@S0 repeats=[2,1]", "expand: 1x8@S0 size=[4,8]")


def joining(call):
    call("cat: [8x6@S0 4x6@S0] | [8x6@P 4x6@R] | [8x8@S0 8x8@S1]", "stack: [8x6@S0 8x6@S1]",
         "split.Tensor: 16x8@S0 split_size=4", "slice.Tensor: 16x8@S0 start=0 end=8",
         "unbind.int: 4x8@S0", "index_select: 16x8@S0 i64.6<16@R dim=0",
         "gather: 16x8@S0 i64.1x8<16@R dim=0 | 16x8@S1 i64.16x3<8@R dim=1",
         "scatter.src: 16x8@S1 i64.16x4<8@R 16x4@R dim=1", "index_put: 16x8@S1 [i64.6<16@R] 6x8@S1",
         "constant_pad_nd: 16x8@S1 pad=[1,1]", "new_zeros: 16x8@P size=[16,8]")


def others(call):
    call("convolution", "4x8x16x16@R 8x8x3x3@S0 -", stride=[1, 1], padding=[1, 1], dilation=[1, 1],
         transposed=False, output_padding=[0, 0], groups=1)
    call("_foreach_add.List", "[16x8@S0 8@R] [16x8@R 8@P]")
    call("_foreach_norm.Scalar", "[16x8@S0 8@R 16x8@P]", ord=2.0)
    call("_foreach_lerp_.Scalar", "[16x8@S0 8@R] [16x8@P 8@P]", weight=0.1)
    call("_fused_adamw_", "[16x8@S0] [16x8@P] [16x8@S0] [16x8@S0] [] [.@R]", lr=1e-3, beta1=0.9,
         beta2=0.999, weight_decay=1e-2, eps=1e-8, amsgrad=False, maximize=False)
    call("native_dropout: 16x8@P p=0.5 train=True", "equal: 16x8@S0 16x8@S1")


def loss_parallel(call):
    on, nll = {"loss_parallel": True}, {"ignore_index": -100, "loss_parallel": True}
    for mesh, x in ((mesh, x) for mesh, logits in LOGITS.items() for x in logits.split()):
        whole, is_one = "R" * len(mesh.split("x")), x.count("S1") == 1
        call("_log_softmax", f"16x12@{x}", dim=1, half_to_float=False, mesh=mesh, **on)
        call("_log_softmax_backward_data", f"16x12@{x} 16x12@{x}", dim=1, input_dtype="f32",
             mesh=mesh, **on)
        targets = dict.fromkeys((x.replace("S1", "R"), whole)) if is_one else [whole]
        reductions = (0, 1, 2) if is_one else (2,)
        weights = ("-", f"12@{whole}")
        for target, reduction, weight in itertools.product(targets, reductions, weights):
            inputs = f"16x12@{x} i64.16<12@{target} {weight}"
            call("nll_loss_forward", inputs, reduction=reduction, mesh=mesh, **nll)
            grad = f"16@{target}" if reduction == 0 else f".@{whole}"
            call("nll_loss_backward", f"{grad} {inputs} .@{whole}", reduction=reduction, mesh=mesh,
                 **nll)
    for x in ("S1", "R"):
        call("nll_loss2d_forward", f"4x12x3x2@{x} i64.4x3x2<12@R -", reduction=2, **nll)
        call("_log_softmax", f"4x12x3x2@{x}", dim=1, half_to_float=False, **on)
    call("nll_loss2d_backward", "4x3x2@R 4x12x3x2@S1 i64.4x3x2<12@R - .@R", reduction=0, **nll)


def masked(call):
    call("relu clone alias detach sum exp neg zeros_like: 4x6x12@M",
         "_to_copy: 4x6x12@M dtype=bf16", "view: 4x6x12@M size=[24,12]",
         "transpose.int: 4x6x12@M dim0=0 dim1=1", "slice.Tensor: 4x6x12@M dim=1 start=0 end=4",
         "mul.Tensor: 4x6x12@M .@R", "mul.Scalar: 4x6x12@M other=2.0")
    for other in ("R", "S0", "S2", "P", "M"):
        call("add.Tensor", f"4x6x12@M 4x6x12@{other}")
        call("cat", f"[4x6x12@M 4x6x12@{other}]")
        call("add.Tensor", f"4x6x12@S0M 4x6x12@{other}R", mesh="2x2")
    call("native_layer_norm", "4x6x12@M 12@R 12@R", normalized_shape=[12], eps=1e-5)
    call("native_dropout", "4x6x12@M", p=0.5, train=True)
    call("embedding_dense_backward", "4x6x12@M i64.4x6<32@R", **BACK)


def with_norms(call):
    for norm in ("N2", "N3.5"):
        order = float(norm[1:])
        call("sqrt clone reciprocal sum abs", f"3@{norm}")
        call("linalg_vector_norm", f"3@{norm}", ord=order)
        call("stack", f"[.@{norm} .@{norm} .@{norm}]", f"[.@{norm}{norm} .@{norm}{norm}] mesh=2x2")
        call("linalg_vector_norm", f"3@{norm}{norm}", ord=order, mesh="2x2")
        call("mul.Scalar", f".@{norm}", other=2.0)
        for other in ("R", "P", norm):
            call("add.Tensor mul.Tensor div.Tensor maximum", f"3@{norm} 3@{other}")
    call("stack: [.@N2 .@R] | [.@N2 .@N1] | [.@Pmax .@Pmax]", "cat: [3@N2 3@N2]",
         "clamp: .@N2 max=1.0", "pow.Tensor_Scalar: 3@N2 exponent=2")


def strided(call):
    for mesh, kinds in STRIDED.items():
        plain, on = "R" * len(mesh.split("x")), {"mesh": mesh}
        for kind, mark in itertools.product(kinds.split(), ("", "~")):
            x = f"16x32@{kind}{mark}"
            call("relu t", x, **on)
            call("sum.dim_IntList", x, dim=[0], **on)
            call("sum", x, **on)
            call("mean.dim", x, dim=[1], **on)
            call("_softmax", x, dim=1, half_to_float=False, **on)
            call("native_layer_norm", f"{x} 32@{plain} -", normalized_shape=[32], eps=1e-5, **on)
            for size in ([2, 8, 32], [4, 4, 32], [4, 4, 2, 16], [512]):
                call("view", x, size=size, **on)
            call("unsqueeze", x, dim=0, **on)
            call("slice.Tensor", x, dim=1, start=0, end=16, **on)
            call("add_.Tensor", f"{x} 16x32@{plain}", **on)
            for other in (plain, "S0" + plain[1:], plain[1:] + "S1", kind + mark):
                call("add.Tensor", f"{x} 16x32@{other}", **on)
                call("mm", f"{x} 32x16@{other}", **on)
                call("addmm", f"16@{plain} {x} 32x16@{other}", **on)
                call("bmm", f"16x4x8@{kind}{mark} 16x8x4@{other}", **on)
            call("cat", f"[{x} 16x32@{plain}]", dim=1, **on)


def attention(call):
    """It has no rule; PyTorch tries its decomposition under many placements, which takes long."""
    name, qkv = "_scaled_dot_product_flash_attention_for_cpu", "2x4x8x4 2x4x8x4 2x4x8x4"
    call(name, *at(qkv, "S0,S0,S0", "S1,S1,S1", "R,R,R"), mesh=2)
    call(name, *at(qkv, "R,R,R"), is_causal=True, mesh=2)


RULES = [matmuls, pointwise, reductions, norms, embeddings_attention_losses, views, joining, others]
SPECIAL = [loss_parallel, masked, with_norms, strided, attention]
