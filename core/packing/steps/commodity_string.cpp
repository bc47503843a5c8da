// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/steps/commodity_string.h"

#include <algorithm>
#include <optional>

#include "core/base/integers.h"
#include "core/plan/series.h"

namespace reshard {
namespace {

// floor(extent x at / all), for 0 <= at <= all: exact as long as it can be.
std::int64_t index_at(std::int64_t extent, Int128 at, Int128 all) {
  if (at == all) return extent;
  while (at >= Int128{1} << 64) at >>= 1, all >>= 1;
  return static_cast<std::int64_t>(at * extent / all);
}

// Cuts a string that is `total` bytes long: walks over its parts in order.
class Cut {
 public:
  Cut(std::int64_t total, Share share, std::int64_t of)
      : lo_(Int128{total} * share.lo), hi_(Int128{total} * share.hi), of_(of) {}

  // Calls visit(box) for the parts within the cut of `box`, which has `bytes` bytes from `begin`
  // on: cut along a dim, or of several tensors of a series, which `series_dim` counts, whole ones
  // and what the cut has of those at its ends.
  template <class Visit>
  void within(const Box& box, std::optional<int> series_dim, int dim, std::int64_t begin,
              std::int64_t bytes, Visit&& visit) const {
    const Int128 from = Int128{begin} * of_, all = Int128{bytes} * of_;
    auto position = [&](Int128 at) { return std::clamp<Int128>(at - from, 0, all); };
    for_each_share(series_dim ? box.extent(*series_dim) : 1, position(lo_), position(hi_), all,
                   [&](std::int64_t first, std::int64_t end, Int128 lo, Int128 hi, Int128 whole) {
                     Box part = box;
                     if (series_dim) {
                       part.lo[*series_dim] = box.lo[*series_dim] + first;
                       part.hi[*series_dim] = box.lo[*series_dim] + end;
                     }
                     cut(part, dim, lo, hi, whole);
                     if (part.volume() > 0) visit(part);
                   });
  }
  bool ends_before(std::int64_t begin) const { return Int128{begin} * of_ >= hi_; }
  bool begins_after(std::int64_t end) const { return Int128{end} * of_ <= lo_; }

 private:
  static void cut(Box& box, int dim, Int128 lo, Int128 hi, Int128 all) {
    std::int64_t first = box.lo[dim], extent = box.extent(dim);
    box.lo[dim] = first + index_at(extent, lo, all);
    box.hi[dim] = first + index_at(extent, hi, all);
  }

  Int128 lo_, hi_;
  std::int64_t of_;
};

// An item in the dims of the plan. The tensors of a series stay whole, so it is cut along the dims
// of one tensor, which are those from `first_dim` on.
struct ItemDims {
  ItemDims(const Commodities& commodities, const CommodityPart& of)
      : box(box_of(commodities.item(of).extents(commodities.demand().dims()))),
        one_tensor(box),
        first_dim(box.dims() - commodities.kind(of).dims()) {
    if (commodities.kind(of).request().tensors() == 1) return;
    series_dim = first_dim++;
    one_tensor.hi[*series_dim] = 1;
  }
  Box box, one_tensor;
  int first_dim;
  std::optional<int> series_dim = {};
};

// The longest of the dims from `first` on.
int longest_dim(const Box& box, int first) {
  int longest = first;
  for (int d = longest + 1; d < box.dims(); ++d)
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

StringPart part_of(const Commodities& commodities, const CommodityPart& of, const Box& box,
                   int across) {
  return {of, box, across, box.volume() * commodities.kind(of).element_bytes()};
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
    ItemDims item(commodities, *part);
    int across = longest_dim(item.one_tensor, item.first_dim);
    cut.within(item.box, item.series_dim, across, begin, bytes,
               [&](const Box& box) { out.push_back(part_of(commodities, *part, box, across)); });
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
      ItemDims item(commodities, part.of);
      int along = chunk_dim(item.one_tensor, part.across, chunks);
      cut.within(part.box, item.series_dim, along, begin, part.bytes, [&](const Box& box) {
        out.push_back(part_of(commodities, part.of, box, part.across));
      });
    }
    begin += part.bytes;
  }
  return out;
}

}  // namespace reshard
