// SPDX-License-Identifier: BSD-3-Clause
// Padding, flipping and rolling.
#include <algorithm>
#include <array>

#include "sim/operators/rearranged.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMostPadding = std::int64_t{1} << 40;

// `pad` has two numbers per dim, last dim first: elements to add before and after. Negative numbers
// remove elements.
ArrayResults constant_pad_nd(const LocalCall& call) {
  const Array& in = call.tensor(0);
  std::vector<std::int64_t> pad = call.attributes.integers("pad");
  int rank = in.shape.size();
  call.expect(call.attributes.text("mode", "constant") == "constant", "expected the mode constant");
  for (std::int64_t places : pad)
    call.expect(places >= -kMostPadding && places <= kMostPadding, "expected fewer places to pad");
  call.expect(pad.size() % 2 == 0 && std::ssize(pad) <= 2 * rank,
              "expected pairs of numbers, at most one pair for each dim");
  Array kept = in;
  Shape shape = in.shape;
  DimVector at(rank, 0);
  for (int i = 0; 2 * i < static_cast<int>(pad.size()); ++i) {
    int d = rank - 1 - i;
    std::int64_t before = pad[to_index(2 * i)], after = pad[to_index(2 * i + 1)];
    std::int64_t cut = std::max<std::int64_t>(-before, 0);
    std::int64_t rest = kept.shape[d] - cut - std::max<std::int64_t>(-after, 0);
    call.expect(rest >= 0, "expected that no more is cut than there is");
    if (rest != kept.shape[d]) kept = narrowed(kept, d, cut, rest);
    at[d] = std::max<std::int64_t>(before, 0);
    shape[d] = rest + at[d] + std::max<std::int64_t>(after, 0);
  }
  Array out = Array::zeros(in.dtype, shape);
  double value = call.number("value", 0);
  if (value != 0)
    out = Array::of(in.dtype, shape, std::vector<double>(to_index(out.count()), value));
  DimVector strides = dense_strides(shape);
  std::int64_t offset = 0;
  for (int d = 0; d < rank; ++d) offset += at[d] * strides[d];
  write_view(out, kept, strides, offset);
  return results(std::move(out));
}

ArrayResults flip(const LocalCall& call) {
  const Array& in = call.tensor(0);
  if (in.count() == 0) return results(in);
  DimVector strides = dense_strides(in.shape);
  std::int64_t offset = 0;
  for (std::int64_t dim : call.attributes.integers("dims")) {
    int d = call.dim_of(dim, in.shape.size());
    if (in.shape.size() == 0) continue;
    call.expect(strides[d] > 0 || in.shape[d] < 2, "expected every dim once");
    offset += (in.shape[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return results(viewed(in, in.shape, strides, offset));
}

Array rolled(const Array& in, int dim, std::int64_t by) {
  if (in.count() == 0) return in;
  std::int64_t extent = in.shape[dim], first = (by % extent + extent) % extent;
  Array out = Array::zeros(in.dtype, in.shape);
  DimVector strides = dense_strides(in.shape);
  write_view(out, narrowed(in, dim, 0, extent - first), strides, first * strides[dim]);
  write_view(out, narrowed(in, dim, extent - first, first), strides, 0);
  return out;
}

// Without dims, rolls the flattened tensor.
ArrayResults roll(const LocalCall& call) {
  Array out = call.tensor(0);
  std::vector<std::int64_t> shifts = call.attributes.integers("shifts");
  auto dims = call.attributes.optional_integers("dims");
  if (!dims || dims->empty()) {
    call.expect(shifts.size() == 1, "expected one shift where there are no dims");
    return results(reshaped(rolled(reshaped(out, {out.count()}), 0, shifts[0]), out.shape));
  }
  call.expect(shifts.size() == dims->size(), "expected as many shifts as dims");
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    int dim = call.dim_of((*dims)[i], out.shape.size());
    if (out.shape.size() > 0) out = rolled(out, dim, shifts[i]);
  }
  return results(std::move(out));
}

constexpr std::array kPaddingRows{
    OperatorRow{"constant_pad_nd", constant_pad_nd},
    OperatorRow{"flip", flip},
    OperatorRow{"pad", constant_pad_nd},
    OperatorRow{"roll", roll},
};

}  // namespace

std::span<const OperatorRow> padding_rows() { return kPaddingRows; }

}  // namespace reshard::sim
