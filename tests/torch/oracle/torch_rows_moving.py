# SPDX-License-Identifier: BSD-3-Clause
"""Views, joining, cutting, indexing, sorting: what row() of common_rows takes."""


def reshapes(row):
    cases = (
        ("abc", lambda z: [z.a * z.b, z.c]),
        ("abc", lambda z: [z.a, z.b * z.c]),
        ("abc", lambda z: [z.a * z.b * z.c]),
        ("ab", lambda z: [z.a * z.b]),
        ("ab", lambda z: [z.b, z.a]),
        ("(ab)c", lambda z: [z.a, z.b, z.c]),
        ("a(bc)", lambda z: [z.a, z.b, z.c]),
        ("(ab)c", lambda z: [z.a, z.b * z.c]),
        ("(abc)", lambda z: [z.a, z.b, z.c]),
        ("ab", lambda z: [z.a, 1, z.b]),
        ("a1b", lambda z: [z.a, z.b]),
        ("1ab", lambda z: [z.a, z.b]),
        ("ab", lambda z: [1, -1]),
        ("ab(cd)", lambda z: [z.a, z.b, z.c, z.d]),
        ("abcd", lambda z: [z.a, z.b, z.c * z.d]),
        ("abcd", lambda z: [z.a * z.b, z.c, z.d]),
        ("abcd", lambda z: [z.a * z.b, z.c * z.d]),
        ("ab", lambda z: [z.a, z.b]),
    )
    for name in ("view", "_unsafe_view", "view_copy", "reshape"):
        for inputs, size in cases if name in ("view", "view_copy") else cases[::3]:
            row(name, inputs, size=size) if name != "reshape" else row(name, inputs, shape=size)


def views(row):
    row("t", "ab")
    row("t", "a")
    row("t_", "ab")
    row("transpose.int", "ab", dim0=0, dim1=1)
    row("transpose.int", "abc", dim0=1, dim1=-1)
    row("transpose.int", "abcd", dim0=1, dim1=2)
    row("permute", "abc", dims=[2, 0, 1])
    row("permute", "abcd", dims=[0, 2, 1, 3])
    row("permute", "ab", dims=[1, 0])
    row("unsqueeze", "ab", dim=0)
    row("unsqueeze", "ab", dim=1)
    row("unsqueeze", "ab", dim=-1)
    for name in ("squeeze.dim", "squeeze_.dim"):
        row(name, "a1b", dim=1)
        row(name, "ab1", dim=-1)
        row(name, "1ab", dim=0)
        row(name, "ab", dim=0)
    row("squeeze", "a1b1")
    row("squeeze_", "a1b1")
    row("squeeze.dims", "a1b1", dim=[1, 3])
    row("expand", "a1", size=lambda z: [z.a, z.b])
    row("expand", "1ab", size=lambda z: [z.c, z.a, z.b])
    row("expand", "ab", size=lambda z: [z.c, z.a, z.b])
    row("expand", "ab", size=lambda z: [z.c, -1, -1])
    row("expand", "ab", size=lambda z: [z.a, z.b])
    row("expand_copy", "a1", size=lambda z: [z.a, z.b])
    row("expand", ".", size=lambda z: [z.a, z.b])
    row("repeat", "ab", repeats=[2, 1])
    row("repeat", "ab", repeats=[1, 1])
    row("repeat", "ab", repeats=[3, 1, 2])
    row("unbind.int", "ab", dim=0)
    row("unbind.int", "abc", dim=1)
    row("as_strided", "ab", size=lambda z: [z.a, z.b], stride=lambda z: [z.b, 1])
    row("as_strided", "ab", size=lambda z: [z.b, z.a], stride=lambda z: [1, z.b])
    for name in ("diagonal", "diag", "diag_embed", "linalg_qr"):
        row(name, "ab")
    row("tril", "ab")
    row("triu", "abc", diagonal=1)
    row("triu_", "ab")
    row("view_as_complex", "ab{2}")


def joining(row):
    row("cat", "[ab ab]")
    row("cat", "[ab cb]")
    row("cat", "[ab ac]", dim=1)
    row("cat", "[ab ab ab]", dim=-1)
    row("cat", "[abc adc]", dim=1)
    row("cat", "[ab]")
    row("cat.out", "[ab ab] {cat}b")
    row("stack", "[ab ab]")
    row("stack", "[ab ab ab]", dim=1)
    row("stack", "[ab ab]", dim=-1)
    row("stack", "[. .]")
    row("stack", "[a a]", dim=1)
    for size in (1, 2, 4, 5):
        row("split.Tensor", "ab", split_size=size)
    row("split.Tensor", "abc", split_size=2, dim=1)
    row("split_with_sizes", "(aa)b", split_sizes=lambda z: [z.a] * z.a)
    row("split_with_sizes", "a{12}", split_sizes=[4, 8], dim=1)
    row("split_with_sizes", "a{12}b", split_sizes=[4, 4, 4], dim=1)
    row("unsafe_split.Tensor", "ab", split_size=2, dim=1)
    row("split_with_sizes_copy", "a{12}", split_sizes=[4, 8], dim=1)
    row("slice.Tensor", "ab", end=2)
    row("slice.Tensor", "ab")
    row("slice.Tensor", "ab", start=0, end=9223372036854775807)
    row("slice.Tensor", "ab", dim=1, start=1, end=-1)
    row("slice.Tensor", "ab", dim=-1, step=2)
    row("slice.Tensor", "abc", dim=2, start=1)
    row("slice_backward", "{3}b", input_sizes=lambda z: [8, z.b], dim=0, start=1, end=4, step=1)
    row("slice_backward", "a{3}", input_sizes=lambda z: [z.a, 8], dim=1, start=1, end=4, step=1)
    row("select.int", "ab", dim=0, index=0)
    row("select.int", "abc", dim=1, index=0)
    row("select.int", "abc", dim=-1, index=-1)
    row("select_backward", "b", input_sizes=lambda z: [z.a, z.b], dim=0, index=0)
    row("select_backward", "ac", input_sizes=lambda z: [z.a, z.b, z.c], dim=1, index=0)
    row("slice_scatter", "ab {1}b", start=0, end=1)
    row("select_scatter", "ab b", dim=0, index=0)
    row("select_scatter", "abc ac", dim=1, index=0)
    row("narrow", "ab", dim=0, start=0, length=1)
    row("constant_pad_nd", "ab", pad=[1, 2])
    row("constant_pad_nd", "ab", pad=[1, 2], value=1.0)
    row("constant_pad_nd", "abc", pad=[0, 0, 1, 1])
    row("flip", "ab", dims=[0])
    row("flip", "abc", dims=[0, 2])
    row("roll", "ab", shifts=[1], dims=[0])
    row("roll", "ab", shifts=[1])
    row("roll", "abc", shifts=[1, -1], dims=[1, 2])


def indexing(row):
    row("index_select", "ab i64.c<a", dim=0)
    row("index_select", "ab i64.c<b", dim=1)
    row("index_select", "abc i64.d<c", dim=-1)
    row("gather", "ab i64.cb<a", dim=0)
    row("gather", "ab i64.ab<a", dim=0)
    row("gather", "ab i64.a1<b", dim=1)
    row("gather", "ab i64.1b<a", dim=0)
    row("gather", "abc i64.ab1<c", dim=2)
    for name in ("scatter.src", "scatter_add", "scatter_.src", "scatter_add_"):
        row(name, "ab i64.ab<b ab", dim=1)
        row(name, "ab i64.ab<a ab", dim=0)
    row("scatter.src", "ab i64.a1<b a1", dim=1)
    row("scatter_add", "abc i64.ab1<c ab1", dim=2)
    row("scatter.value", "ab i64.a1<b", dim=1, value=1.0)
    row("scatter_.value", "ab i64.ab<b", dim=1, value=1.0)
    row("index.Tensor", "ab [i64.c<a]")
    row("index.Tensor", "ab [- i64.c<b]")
    row("index.Tensor", "ab [i64.c<a i64.c<b]")
    row("index.Tensor", "abc [i64.d<a - i64.d<c]")
    row("index.Tensor", "abc [- i64.d<b]")
    row("index.Tensor", "abc [i64.de<a]")
    row("index.Tensor", "abc [i64.d1<a i64.e<b]")
    for name in ("index_put", "index_put_"):
        row(name, "ab [i64.c<a] cb")
        row(name, "ab [i64.c<a] cb", accumulate=True)
        row(name, "ab [- i64.c<b] ac")
        row(name, "ab [i64.c<a i64.c<b] c")
        row(name, "ab [i64.c<a] .")
    row("index_add", "ab i64.c<a cb", dim=0)
    row("index_copy", "ab i64.c<a cb", dim=0)
    row("index_fill.int_Scalar", "ab i64.c<a", dim=0, value=1.0)
    for name in ("sort", "topk", "sort.stable"):
        more = {"k": 1} if name == "topk" else {"stable": True} if name == "sort.stable" else {}
        row(name, "ab", **more)
        row(name, "ab", **more, dim=0)
        row(name, "abc", **more, dim=1)
    row("bucketize.Tensor", "ab c")
    row("nonzero", "ab")
    row("masked_select", "ab b8.ab")


def moving(row):
    for part in (reshapes, views, joining, indexing):
        part(row)
