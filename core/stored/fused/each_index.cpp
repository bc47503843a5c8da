// SPDX-License-Identifier: BSD-3-Clause
#include "core/stored/fused/each_index.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

constexpr std::int64_t kMostBuffers = std::int64_t{1} << 24;

struct OneIndex {
  std::vector<StoredPart> parts;
  std::int64_t in_tensor = 0;
};

}  // namespace

void add_each(Stored& to, const StoredBuffer& whole, FusedBuffer::Each each) {
  const std::int64_t count = whole.shape[0], size = element_count(whole.shape) / count;
  if (count > kMostBuffers)
    throw InputError("each: expected at most 2^24 buffers of a rank, found more");
  std::vector<OneIndex> indices(to_index(count));
  for (const StoredPart& part : whole.parts)
    for (std::int64_t i = part.box.lo[0]; i < part.box.hi[0]; ++i) {
      const std::int64_t offset = part.offset + (i - part.box.lo[0]) * part.strides[0];
      OneIndex& index = indices[to_index(offset / size)];
      index.in_tensor = i;
      index.parts.push_back(part);
      index.parts.back().box.lo[0] = i;
      index.parts.back().box.hi[0] = i + 1;
      index.parts.back().offset = offset % size;
    }
  const std::string name(whole.name);
  const std::size_t at = name.find("{}");
  for (std::int64_t local = 0; local < count; ++local) {
    OneIndex& index = indices[to_index(local)];
    if (index.parts.empty()) continue;
    std::string own = fmt::format("{}{}{}", name.substr(0, at),
                                  each == FusedBuffer::Each::Local ? local : index.in_tensor,
                                  name.substr(at + 2));
    StoredBuffer out{
        whole.rank,     own,       without_first(whole.shape), whole.dtype, std::move(index.parts),
        whole.converts, whole.mesh};
    to.add(std::move(out));
  }
}

}  // namespace reshard
