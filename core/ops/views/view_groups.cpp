// SPDX-License-Identifier: BSD-3-Clause
// Groups of dims that a change of shape joins and cuts, and as_strided as a permutation of dims.
#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/ops/views/view_map.h"

namespace reshard {

// The grouping is PyTorch's: its placements depend on how ties (dims of length 1) are resolved.
namespace {

// Dims begin .. end - 1.
struct Range {
  int begin, end;
};

// Adds the output dims of a group, made of the input dims `from`.
void add_group(const Shape& output, Range from, Range to, ViewMap& map) {
  int pieces = 0, piece = 0;
  std::int64_t left = 1;
  for (int d = to.begin; d < to.end; ++d) pieces += output[d] != 1;
  for (int d = to.begin; d < to.end; ++d) {
    ViewDim dim;
    bool alone = to.end - to.begin == 1;
    if (from.begin < from.end && (alone || output[d] != 1)) {
      dim.first = static_cast<std::int8_t>(from.begin);
      dim.last = static_cast<std::int8_t>(from.end - 1);
      dim.kind = !alone                  ? ViewDim::Kind::Split
                 : dim.first == dim.last ? ViewDim::Kind::Input
                                         : ViewDim::Kind::Flatten;
    }
    if (dim.kind == ViewDim::Kind::Split) {
      dim.left = left;
      for (int other = d + 1; other < to.end; ++other) dim.right *= output[other];
      dim.piece = static_cast<std::int8_t>(piece++);
      dim.is_last = piece == pieces;
      left *= output[d];
    }
    map.add(dim, output[d]);
  }
}

bool divides(std::int64_t a, std::int64_t b) { return a != 0 && b % a == 0; }

}  // namespace

void ViewMap::add(ViewDim dim, std::int64_t length) {
  if (output.size() == kMaxDims)
    throw NotCovered(fmt::format("shape: expected at most {} dims, found more", kMaxDims));
  dims[to_index(output.size())] = dim;
  output.push_back(length);
}

void group_dims(const Shape& input, const Shape& output, ViewMap& map) {
  Range from{0, 0}, to{0, 0};
  while (from.end < input.size() || to.end < output.size()) {
    from.begin = from.end, to.begin = to.end;
    bool has_from = from.begin < input.size(), has_to = to.begin < output.size();
    std::int64_t in = has_from ? input[from.end++] : 1, out = has_to ? output[to.end++] : 1;
    // A 1 forms its own group only opposite a 1. (Where one side has ended, a tensor without
    // elements can have other lengths left.)
    if (in == 1 && out != 1 && has_from) {
      to.end = to.begin;
    } else if (in != 1 && out == 1 && has_to) {
      from.end = from.begin;
    } else if (has_from && has_to) {
      while (in != out) {
        bool more_in = from.end < input.size(), more_out = to.end < output.size();
        if (more_in && (!more_out || divides(in, out) || out > in))
          in *= input[from.end++];
        else if (more_out)
          out *= output[to.end++];
        else
          break;
      }
    }
    add_group(output, from, to, map);
  }
}

namespace {

using Numbers = std::vector<std::int64_t>;

// Dims that are not yet taken and have this size and stride.
std::vector<int> same_dims(const Shape& shape, const Numbers& own, std::int64_t size,
                           std::int64_t stride, const std::vector<int>& taken) {
  std::vector<int> out;
  for (int d = 0; d < shape.size(); ++d)
    if (shape[d] == size && own[to_index(d)] == stride &&
        std::count(taken.begin(), taken.end(), d) == 0)
      out.push_back(d);
  return out;
}

}  // namespace

std::vector<int> strided_order(const Shape& shape, const OpAttributes& attributes) {
  Numbers sizes = attributes.integers("size"), strides = attributes.integers("stride"),
          own(to_index(shape.size()), 1);
  for (int d = shape.size() - 2; d >= 0; --d)
    own[to_index(d)] = own[to_index(d + 1)] * shape[d + 1];
  bool fits = sizes.size() == own.size() && strides.size() == own.size() &&
              attributes.integer("storage_offset", 0) == 0;
  bool is_same = fits && strides == own && std::equal(sizes.begin(), sizes.end(), shape.begin());
  std::vector<int> out;
  for (std::size_t at = 0; fits && at < sizes.size(); ++at) {
    std::vector<int> found = is_same ? std::vector<int>{static_cast<int>(at)}
                                     : same_dims(shape, own, sizes[at], strides[at], out);
    fits = found.size() == 1;
    if (fits) out.push_back(found[0]);
  }
  if (!fits)
    throw InputError(
        fmt::format("as_strided is supported on sharded tensors only as a permutation of dims: "
                    "expected the sizes and strides of [{}] in some order",
                    text(shape)));
  return out;
}

}  // namespace reshard
