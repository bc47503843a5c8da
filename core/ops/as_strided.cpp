// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/as_strided.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard {
namespace {

using Numbers = std::vector<std::int64_t>;

// Dims that have not been taken, of this size and stride.
std::vector<int> alike(const Shape& shape, const Numbers& own, std::int64_t size,
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
                                     : alike(shape, own, sizes[at], strides[at], out);
    fits = found.size() == 1;
    if (fits) out.push_back(found[0]);
  }
  if (!fits)
    throw InputError(
        fmt::format("as_strided is not supported on sharded tensors where it is no permutation of "
                    "dims: expected sizes and strides of [{}] in another order",
                    text(shape)));
  return out;
}

}  // namespace reshard
