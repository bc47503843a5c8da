// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/commodity_string.h"

#include <algorithm>

#include "core/base/integers.h"

namespace reshard {
namespace {

// floor(extent x at / all), for 0 <= at < all: exact as long as it can be.
std::int64_t index_at(std::int64_t extent, Int128 at, Int128 all) {
  while (at >= Int128{1} << 64) at >>= 1, all >>= 1;
  return static_cast<std::int64_t>(at * extent / all);
}

// Cuts a string that is `total` bytes long: walks over its parts in order.
class Cut {
 public:
  Cut(std::int64_t total, Share share, std::int64_t of)
      : lo_(Int128{total} * share.lo), hi_(Int128{total} * share.hi), of_(of) {}

  // The part of `box`, which has `bytes` bytes from `begin` on, within the cut, along a dim.
  Box within(Box box, int dim, std::int64_t begin, std::int64_t bytes) const {
    std::int64_t first = box.lo[dim], extent = box.extent(dim);
    auto index = [&](Int128 position) {
      Int128 at = position - Int128{begin} * of_, all = Int128{bytes} * of_;
      if (at <= 0) return first;
      return at >= all ? first + extent : first + index_at(extent, at, all);
    };
    box.lo[dim] = index(lo_);
    box.hi[dim] = index(hi_);
    return box;
  }
  bool ends_before(std::int64_t begin) const { return Int128{begin} * of_ >= hi_; }
  bool begins_after(std::int64_t end) const { return Int128{end} * of_ <= lo_; }

 private:
  Int128 lo_, hi_;
  std::int64_t of_;
};

int longest_dim(const Box& box) {
  int longest = 0;
  for (int d = 1; d < box.dims(); ++d)
    if (box.extent(d) > box.extent(longest)) longest = d;
  return longest;
}

// The dim along which the chunks of an item follow each other.
int chunk_dim(const Box& item, int across, std::int32_t chunks) {
  int along = across;
  for (int d = 0; d < item.dims(); ++d)
    if (d != across && item.extent(d) >= chunks &&
        (along == across || item.extent(d) > item.extent(along)))
      along = d;
  return along;
}

void add(std::vector<StringPart>& out, const Commodities& commodities, StringPart part) {
  if (part.box.volume() == 0) return;
  part.bytes = part.box.volume() * commodities.kind(part.of).element_bytes();
  out.push_back(std::move(part));
}

}  // namespace

std::vector<StringPart> slice_of(const Commodities& commodities, const Commodity& commodity,
                                 Share share, std::int64_t of) {
  Cut cut(commodity.bytes, share, of);
  auto part = std::partition_point(commodity.parts.begin(), commodity.parts.end(),
                                   [&](const auto& p) { return cut.begins_after(p.end); });
  std::vector<StringPart> out;
  for (; part != commodity.parts.end(); ++part) {
    std::int64_t bytes = commodities.bytes(*part), begin = part->end - bytes;
    if (cut.ends_before(begin)) break;
    Box item = box_of(commodities.item(*part).extents(commodities.demand().dims()));
    int across = longest_dim(item);
    add(out, commodities, {*part, cut.within(item, across, begin, bytes), across, 0});
  }
  return out;
}

std::vector<StringPart> chunk_of(const Commodities& commodities,
                                 const std::vector<StringPart>& slice, Share share, std::int64_t of,
                                 std::int32_t chunks) {
  std::int64_t total = 0, begin = 0;
  for (const StringPart& part : slice) total += part.bytes;
  Cut cut(total, share, of);
  std::vector<StringPart> out;
  for (const StringPart& part : slice) {
    if (cut.ends_before(begin)) break;
    if (!cut.begins_after(begin + part.bytes)) {
      Box item = box_of(commodities.item(part.of).extents(commodities.demand().dims()));
      Box box = cut.within(part.box, chunk_dim(item, part.across, chunks), begin, part.bytes);
      add(out, commodities, {part.of, box, part.across, 0});
    }
    begin += part.bytes;
  }
  return out;
}

}  // namespace reshard
