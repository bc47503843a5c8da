# SPDX-License-Identifier: BSD-3-Clause
"""The calls whose outcome was written down when the rules were studied, and the refusals."""

from calls import call

LN = {"normalized_shape": [16], "eps": 1e-05}
ADAM = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 1e-2, "eps": 1e-8}
ADAM.update(amsgrad=False, maximize=False)
CONV = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "transposed": False}
CONV.update(output_padding=[0, 0], groups=1)


def matmuls():
    for left in ("R", "S0", "S1", "P"):
        for right in ("R", "S0", "S1", "P"):
            yield call("mm", "4", f"64x32@{left} 32x48@{right}")
    yield call("mm", "4", "4096x4096@S0 4096x4096@S0")
    yield call("mm", "4", "4096x4096@P 4096x4096@S0")
    yield call("mm", "2x2", "64x32@S0S1 32x48@S1S0")
    yield call("mm", "2x2", "64x32@PavgR 32x48@S0R")
    yield call("mm", "2x2", "64x32@S0S1 32x48@S0S1")
    yield call("mm", "4", "6x7@S1 7x3@S0")
    yield call("mm", "4", "3x8@S0 8x12@R")
    yield call("mm", "2x2", "3x8@S0S0 8x12@RR")
    for where in ("R S1 S0", "R R S1", "R P R", "S0 S0 R"):
        bias, left, right = where.split()
        yield call("addmm", "4", f"48@{bias} 64x32@{left} 32x48@{right}")
    yield call("addmm", "2x2", "48@RR 64x32@S0S1 32x48@RS0")
    yield call("bmm", "4", "8x16x32@S0 8x32x12@R")
    yield call("bmm", "4", "8x16x32@S0 8x32x12@S2")
    yield call("baddbmm", "4", "16x12@R 8x16x32@S2 8x32x12@S1")


def pointwise():
    for name, left, right in (
        ("add.Tensor", "P", "R"),
        ("add.Tensor", "Pavg", "R"),
        ("add.Tensor", "R", "Pmax"),
        ("add.Tensor", "S0", "S1"),
        ("add.Tensor", "S0", "P"),
        ("add.Tensor", "P", "Pavg"),
        ("mul.Tensor", "P", "P"),
        ("mul.Tensor", "P", "S0"),
        ("div.Tensor", "R", "P"),
        ("sub.Tensor", "R", "P"),
        ("maximum", "P", "P"),
    ):
        yield call(name, "4", f"16x8@{left} 16x8@{right}")
    yield call("relu", "4", "16x8@P")
    yield call("neg", "4", "16x8@Pmax")
    yield call("empty_like", "4", "16x8@P")
    yield call("fill_.Scalar", "4", "16x8@P", value=1.0)
    yield call("add.Scalar", "4", "16x8@P", other=3.0)
    yield call("mul.Scalar", "4", "16x8@Pmax", other=3.0)
    yield call("_to_copy", "4", "16x8@P", dtype="i32")
    yield call("add.Tensor", "4", "16x8@S0 8@S0")
    yield call("mul.Tensor", "2x2", "16x8@S0P 8@RR")
    yield call("relu", "4", "3x5@S0")
    yield call("add.Tensor", "4", "3x5@S0 3x5@R")
    yield call("add.Tensor", "2x2", "16x8@_S(0,2)S0 16x8@S0S0")
    yield call("where.self", "4", "b8.16x8@R 16x8@S0 16x8@P")
    yield call("add_.Tensor", "4", "16x8@S0 16x8@R")
    yield call("add_.Tensor", "4", "16x8@R 16x8@S0")
    yield call("add_.Tensor", "4", "16x8@P 16x8@R")
    yield call("relu_", "4", "16x8@P")


def reductions():
    yield call("sum.dim_IntList", "4", "16x8@S0", dim=[0])
    yield call("sum", "4", "16x8@Pavg")
    yield call("mean.dim", "4", "16x8@S0", dim=[0])
    yield call("mean.dim", "4", "7x8@S0", dim=[0])
    yield call("mean", "4", "16x8@P")
    yield call("max.dim", "4", "16x8@S0", dim=0)
    yield call("amax", "4", "16x8@P", dim=[1])
    yield call("linalg_vector_norm", "4", "16x8@S0")
    yield call("linalg_vector_norm", "4", "16x8@P")
    yield call("var.correction", "4", "16x8@S0", dim=[0])
    yield call("cumsum", "4", "16x8@S0", dim=0)
    yield call("argmax", "4", "16x8@S0")
    yield call("sum.dim_IntList", "2x2", "16x8@S0S1", dim=[0])
    yield call("mean.dim", "2x2", "6x8@S0S0", dim=[0])
    yield call("linalg_vector_norm", "2x2", "16x8@S0S1")
    yield call("max", "2x2", "16x8@S0P")


def norms():
    yield call("_softmax", "4", "4x8x16@S2", dim=-1, half_to_float=False)
    yield call("_softmax_backward_data", "4", "4x8x16@S1 4x8x16@S0", dim=2, input_dtype="f32")
    yield call("native_layer_norm", "4", "4x8x16@S2 16@R 16@R", **LN)
    yield call("native_layer_norm", "4", "4x8x16@S1 16@S0 16@R", **LN)
    yield call(
        "native_layer_norm_backward",
        "4",
        "4x8x16@P 4x8x16@S1 4x8x1@S1 4x8x1@S1 16@R 16@R",
        normalized_shape=[16],
        output_mask=[True, True, True],
    )
    yield call("_fused_rms_norm", "4", "4x8x16@S2 16@S0", **LN)
    group = {"N": 4, "C": 8, "HxW": 36, "group": 2, "eps": 1e-05}
    yield call("native_group_norm", "4", "4x8x6x6@S0 8@R 8@R", **group)


def embeddings_attention_losses():
    for weight, index in (("S0", "R"), ("S0", "S0"), ("P", "R")):
        yield call("embedding", "4", f"32x12@{weight} i64.4x6<32@{index}")
    yield call("embedding", "2x2", "32x12@RS0 i64.4x6<32@S0R")
    yield call("embedding", "2x2", "32x12@S0S0 i64.4x6<32@RR")
    back = {"num_weights": 32, "padding_idx": -1, "scale_grad_by_freq": False}
    yield call("embedding_dense_backward", "4", "4x6x12@S0 i64.4x6<32@S0", **back)
    yield call("embedding_dense_backward", "4", "4x6x12@S1 i64.4x6<32@R", **back)
    for q, k, v in (("S2", "S2", "S2"), ("S1", "R", "R")):
        shape = "bf16.4x8x16x32"
        yield call(
            "_scaled_dot_product_flash_attention",
            "4",
            f"{shape}@{q} {shape}@{k} {shape}@{v}",
            dropout_p=0.0,
            is_causal=True,
        )
    yield call(
        "_scaled_dot_product_efficient_attention",
        "4",
        f"{shape}@S0 {shape}@S0 {shape}@S0 bf16.1x8x16x16@R",
        compute_log_sumexp=True,
    )
    none = {"ignore_index": -100}
    for reduction, x, target in ((1, "S0", "S0"), (2, "S0", "S0"), (2, "S1", "R")):
        inputs = f"16x12@{x} i64.16<12@{target} -"
        yield call("nll_loss_forward", "4", inputs, reduction=reduction, **none)
    inputs = ".@R 16x12@S0 i64.16<12@S0 - .@P"
    yield call("nll_loss_backward", "4", inputs, reduction=2, **none)


def views():
    for mesh, x, size in (
        ("4", "4x8x16@S1", [32, 16]),
        ("4", "4x8x16@S2", [32, 16]),
        ("4", "32x16@S0", [2, 16, 16]),
        ("4", "5x8@S0", [40]),
        ("4", "8x5@S1", [40]),
        ("2x2", "8x8@S0S1", [64]),
        ("4", "2x8x32@S2", [2, 8, 4, 8]),
        ("4", "2x8x32@S2", [2, 8, 2, 16]),
        ("4", "2x8x4x8@S3", [2, 8, 32]),
        ("4", "12x8@S0", [8, 12]),
        ("2x2", "4x8x16@S0S1", [32, 16]),
        ("4", "8x16@_S(0,2)", [2, 4, 16]),
        ("4", "8x16@_S(0,2)~", [2, 4, 16]),
    ):
        yield call("view", mesh, x, size=size)
    yield call("view_copy", "4", "32x16@S0", size=[2, 16, 16])
    yield call("view_copy", "4", "4x8x16@S1", size=[32, 16])
    yield call("view_copy", "3", "3x8@S0", size=[8, 3])
    yield call("squeeze.dim", "4", "1x8@S0", dim=0)
    yield call("repeat", "4", "8x4@S0", repeats=[2, 1])
    yield call("expand", "4", "1x8@S0", size=[4, 8])


def joining():
    yield call("cat", "4", "[8x6@S0 4x6@S0]")
    yield call("cat", "4", "[8x6@P 4x6@R]")
    yield call("cat", "4", "[8x8@S0 8x8@S1]")
    yield call("stack", "4", "[8x6@S0 8x6@S1]")
    yield call("split.Tensor", "4", "16x8@S0", split_size=4)
    yield call("slice.Tensor", "4", "16x8@S0", start=0, end=8)
    yield call("unbind.int", "4", "4x8@S0")
    yield call("index_select", "4", "16x8@S0 i64.6<16@R", dim=0)
    yield call("gather", "4", "16x8@S0 i64.1x8<16@R", dim=0)
    yield call("gather", "4", "16x8@S1 i64.16x3<8@R", dim=1)
    yield call("scatter.src", "4", "16x8@S1 i64.16x4<8@R 16x4@R", dim=1)
    yield call("index_put", "4", "16x8@S1 [i64.6<16@R] 6x8@S1")
    yield call("constant_pad_nd", "4", "16x8@S1", pad=[1, 1])
    yield call("new_zeros", "4", "16x8@P", size=[16, 8])


def others():
    yield call("convolution", "4", "4x8x16x16@R 8x8x3x3@S0 -", **CONV)
    pair = "[16x8@S0 8@R] [16x8@R 8@P]"
    yield call("_foreach_add.List", "4", pair)
    yield call("_foreach_norm.Scalar", "4", "[16x8@S0 8@R 16x8@P]", ord=2.0)
    yield call("_foreach_lerp_.Scalar", "4", "[16x8@S0 8@R] [16x8@P 8@P]", weight=0.1)
    tensors = " ".join(f"[16x8@{where}]" for where in ("S0", "P", "S0", "S0"))
    yield call("_fused_adamw_", "4", f"{tensors} [] [.@R]", **ADAM)
    yield call("native_dropout", "4", "16x8@P", p=0.5, train=True)
    yield call("equal", "4", "16x8@S0 16x8@S1")


def fixed():
    for part in (matmuls, pointwise, reductions, norms, embeddings_attention_losses):
        yield from part()
    for part in (views, joining, others):
        yield from part()
