// SPDX-License-Identifier: BSD-3-Clause
#include "core/demand/likeness.h"

#include <algorithm>
#include <map>
#include <vector>

namespace reshard {
namespace {

void add_places(Hasher& hasher, const std::vector<Rank>& ranks, const Topology& topology) {
  hasher.add(static_cast<std::int64_t>(ranks.size()));
  std::map<std::int32_t, std::int64_t> nodes;
  for (Rank rank : ranks) {
    auto next = static_cast<std::int64_t>(nodes.size());
    hasher.add(nodes.try_emplace(topology.node_of(rank), next).first->second);
    hasher.add(std::int64_t{topology.local_of(rank)});
  }
}

void add_box(Hasher& hasher, const Box& box) {
  for (std::int64_t at : box.lo) hasher.add(at);
  for (std::int64_t at : box.hi) hasher.add(at);
}

// Both layouts; each rank counts as its index in `ranks`.
Digest digest_among(const Request& request, const std::vector<Rank>& ranks) {
  Hasher hasher;
  for (const Layout* layout : {&request.source(), &request.destination()}) {
    if (layout->is_product())
      hasher.add(digest_of(layout->text()).hex());
    else
      add_boxes(hasher, *layout);
    for (Rank rank : layout->mesh().ranks())
      hasher.add(std::int64_t{std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin()});
  }
  return hasher.digest();
}

void add_order(Hasher& hasher, const Stages& stages) {
  for (const Stage& stage : stages) {
    hasher.add(static_cast<std::int64_t>(stage.tensors.size()));
    for (TensorId tensor : stage.tensors) hasher.add(static_cast<std::int64_t>(tensor));
    hasher.add(static_cast<std::int64_t>(stage.after.size()));
    for (std::int32_t before : stage.after) hasher.add(std::int64_t{before});
  }
}

}  // namespace

void add_boxes(Hasher& hasher, const Layout& layout) {
  for (std::int64_t extent : layout.shape()) hasher.add(extent);
  hasher.add(text(layout.dtype()));
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    const std::vector<Box> boxes = layout.boxes(position);
    const std::span<const Box> padding = layout.padding(position);
    hasher.add(std::int64_t{std::ssize(boxes)});
    hasher.add(std::int64_t{std::ssize(padding)});
    layout.for_each_part(position, [&](const Box& box, const DimVector& local_lo) {
      add_box(hasher, box_at(local_lo, box.extents()));
      add_box(hasher, box);
    });
    for (const Box& box : padding) add_box(hasher, box);
    for (std::int64_t extent : layout.local_shape(position)) hasher.add(extent);
  }
}

Digest likeness_of(std::span<const Request> requests, const Stages& stages,
                   const Topology& topology) {
  const std::vector<Rank> ranks = ranks_of(requests);
  Hasher hasher;
  add_places(hasher, ranks, topology);
  hasher.add(static_cast<std::int64_t>(requests.size()));
  std::map<Digest, Digest> known;  // of equal requests
  for (const Request& request : requests) {
    auto [at, is_new] = known.try_emplace(request.fingerprint());
    if (is_new) at->second = digest_among(request, ranks);
    hasher.add(at->second.hex());
  }
  add_order(hasher, stages);
  return hasher.digest();
}

}  // namespace reshard
