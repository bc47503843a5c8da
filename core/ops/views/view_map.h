// SPDX-License-Identifier: BSD-3-Clause
// Operators that only rename, join, cut or repeat dims, as a map: where each dim of the output
// comes from. Their placements follow from it (core/ops/views/view_rule.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout/box.h"
#include "core/ops/attributes.h"
#include "core/ops/call.h"

namespace reshard {

// Where one dim of the output comes from.
//   Input      is dim `first`
//   Flatten    dims first .. last, row-major
//   Split      one of the pieces into which dims first .. last, flattened, are cut
//   Broadcast  dim `first`, of length 1, repeated
//   Repeat     dim `first`, of any length, repeated
//   New        nothing: of length 1, or equal along it
struct ViewDim {
  enum class Kind : std::uint8_t { New, Input, Flatten, Split, Broadcast, Repeat };
  Kind kind = Kind::New;
  std::int8_t first = -1, last = -1;
  // Split: the index of the piece, not counting pieces of length 1, whether it is the last one, and
  // the products of the lengths on its left and right.
  std::int8_t piece = 0;
  bool is_last = false;
  std::int64_t left = 1, right = 1;
};

// What PyTorch does where a sharded dim cannot be carried through.
//   Strict  refuses: view, squeeze and everything made from them
//   Loose   replicates it: expand, permute, transpose, unsqueeze, repeat, the copying forms of view
//   Rows    has rows of placements instead of a rule over a map: t and the other copying forms.
//           Each Input dim is a row; short dims are then gathered, as for any operator with rows
enum class ViewKind : std::uint8_t { Strict, Loose, Rows };

struct ViewMap {
  ViewKind kind = ViewKind::Strict;
  Shape input, output;
  std::array<ViewDim, kMaxDims> dims;  // output.size() of them

  const ViewDim& dim(int d) const { return dims[to_index(d)]; }
  // Adds a dim to the output. Throws InputError beyond kMaxDims.
  void add(ViewDim dim, std::int64_t length);
};

// Whether view_map() supports it, with or without an overload (".int"), in place or not.
bool is_view(std::string_view name);

// Throws InputError for sizes that do not fit the tensor, and for dims that it does not have.
ViewMap view_map(std::string_view name, const TensorMeta& input, const OpAttributes& attributes);

// What a rank calls on its shard to get its part of the output, of shape `local`: view, permute,
// expand or repeat, whatever the operator's name. Joined, cut, added and dropped dims become a
// view, so that dims that have length 1 only in the shard are kept.
struct LocalView {
  std::string name;
  OpAttributes attributes;
};
LocalView local_view(const ViewMap& map, const Shape& local);

// Maps `output` to `input`, of the same number of elements, by joining and cutting dims: the
// smallest groups of neighbouring dims with equal products, from the left.
void group_dims(const Shape& input, const Shape& output, ViewMap& map);

// as_strided on a contiguous tensor: the tensor's dim that each dim of the result is. PyTorch
// supports only permutations, and only those where the size and stride of every dim are those of
// one dim of the tensor. Throws InputError for everything else.
std::vector<int> strided_order(const Shape& shape, const OpAttributes& attributes);

}  // namespace reshard
