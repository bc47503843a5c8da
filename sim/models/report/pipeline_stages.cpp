// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/report/pipeline_stages.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "core/base/sort_once.h"

namespace reshard::sim {
namespace {

using Ranks = std::vector<Rank>;

// Adds the ranks that have elements.
void add_holders(const Layout& layout, Ranks& out) {
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    if (element_count(layout.local_shape(position)) > 0)
      out.push_back(layout.mesh().rank_at(position));
}

bool includes(const Ranks& all, const Ranks& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

struct Holders {
  Ranks from, to;
  std::vector<std::size_t> tensors;

  void add(const Request& request, std::size_t index) {
    add_holders(request.source(), from);
    add_holders(request.destination(), to);
    tensors.push_back(index);
    // Every tensor of a layer adds its ranks again.
    if (from.size() > kSortedFrom) sort_once(from);
    if (to.size() > kSortedFrom) sort_once(to);
  }
  static constexpr std::size_t kSortedFrom = std::size_t{1} << 16;
};

}  // namespace

int layer_in(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  std::size_t at = name.find(kLayers);
  if (at == std::string_view::npos) return -1;
  int out = -1;
  auto [end, error] =
      std::from_chars(name.data() + at + kLayers.size(), name.data() + name.size(), out);
  return error == std::errc{} ? out : -1;
}

std::string PipelineStage::layers_text() const {
  if (first_layer < 0) return "-";
  return first_layer == last_layer ? std::to_string(first_layer)
                                   : fmt::format("{}-{}", first_layer, last_layer);
}

std::vector<PipelineStage> pipeline_stages(const std::vector<const Request*>& requests,
                                           bool by_source) {
  std::map<int, Holders> layers;
  std::vector<Holders> others;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    int layer = layer_in(requests[i]->name());
    (layer < 0 ? others.emplace_back() : layers[layer]).add(*requests[i], i);
  }
  std::vector<PipelineStage> out;
  std::map<std::pair<Ranks, Ranks>, std::size_t> known;
  for (auto& [layer, holders] : layers) {
    sort_once(holders.from);
    sort_once(holders.to);
    std::pair key{holders.from, by_source ? Ranks{} : holders.to};
    auto [at, is_new] = known.try_emplace(std::move(key), out.size());
    if (is_new) out.push_back({holders.from, holders.to, layer});
    PipelineStage& stage = out[at->second];
    stage.last_layer = layer;
    stage.tensors.insert(stage.tensors.end(), holders.tensors.begin(), holders.tensors.end());
  }
  for (Holders& holders : others) {
    sort_once(holders.from);
    sort_once(holders.to);
    auto stage = std::find_if(out.begin(), out.end(), [&](const PipelineStage& each) {
      return includes(each.from, holders.from) && (by_source || includes(each.to, holders.to));
    });
    if (stage == out.end())
      stage = out.insert(out.end(), {std::move(holders.from), std::move(holders.to)});
    stage->tensors.push_back(holders.tensors.front());
  }
  for (PipelineStage& stage : out) std::sort(stage.tensors.begin(), stage.tensors.end());
  std::stable_sort(out.begin(), out.end(), [](const PipelineStage& a, const PipelineStage& b) {
    return std::pair(a.from, a.first_layer) < std::pair(b.from, b.first_layer);
  });
  return out;
}

}  // namespace reshard::sim
