// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/panels.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/page/page.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostMemoryBars = 24;
constexpr double kMemoryRight = 112, kMemoryBar = 20, kMemoryGap = 6, kMemoryTop = 4;

constexpr std::array<std::pair<const char*, const char*>, 3> kParts = {
    {{"source", "source shard"},
     {"destination", "destination shard"},
     {"temporary", "temporaries at their peak"}}};

// Ranks with the same bytes, which are in the order of kParts.
struct Holding {
  std::vector<Rank> ranks;
  std::array<std::int64_t, 3> bytes;
  std::int64_t peak() const { return bytes[0] + bytes[1] + bytes[2]; }
};

// Sorted by peak, descending, then by lowest rank.
std::vector<Holding> holdings_of(const std::vector<RankMemory>& ranks) {
  std::map<std::array<std::int64_t, 3>, std::vector<Rank>> equal;
  for (const RankMemory& own : ranks)
    equal[{own.source_bytes, own.destination_bytes, own.temporary_bytes}].push_back(own.rank);
  std::vector<Holding> out;
  for (auto& [own, holders] : equal) out.push_back({std::move(holders), own});
  std::stable_sort(out.begin(), out.end(), [](const Holding& a, const Holding& b) {
    return std::pair(-a.peak(), a.ranks.front()) < std::pair(-b.peak(), b.ranks.front());
  });
  return out;
}

void draw_bar(Node svg, const Holding& holding, double y, double per_byte) {
  add_tip(add(add(svg, "g", {{"class", "names"}}), "text", {{"x", kPanelLeft - 8}, {"y", y + 14}},
              ranks_name(holding.ranks)),
          "ranks " + ranks_text(holding.ranks));
  double x = kPanelLeft;
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    double width = per_byte * static_cast<double>(holding.bytes[part]);
    if (holding.bytes[part] == 0) continue;
    add_tip(add(svg, "rect",
                {{"class", kParts[part].first},
                 {"x", x},
                 {"y", y},
                 {"width", width},
                 {"height", kMemoryBar}}),
            fmt::format("{}: {}", kParts[part].second, bytes_text(holding.bytes[part])));
    x += width;
  }
  add(svg, "text", {{"class", "value"}, {"x", x + 8}, {"y", y + 14}}, bytes_text(holding.peak()));
}

void list_holdings(Node panel, const std::vector<Holding>& holdings, std::size_t shown) {
  HtmlTable table(add_folded(panel, "Numbers"), "Peak bytes held, fullest ranks first",
                  {"ranks", ">source", ">destination", ">temporaries", ">peak"});
  for (std::size_t i = 0; i < shown; ++i) {
    const Holding& own = holdings[i];
    table.add_row({ranks_text(own.ranks), Cell::bytes(own.bytes[0]), Cell::bytes(own.bytes[1]),
                   Cell::bytes(own.bytes[2]), Cell::bytes(own.peak())});
  }
}

}  // namespace

std::vector<RankMemory> memory_of(const Plan& plan, const PlanBytes& bytes) {
  std::vector<RankMemory> out;
  for (std::size_t s = 0; s < plan.slot_count(); ++s) {
    auto slot = static_cast<Slot>(s);
    RankMemory own{plan.rank_of(slot), 0, 0, 0};
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
      auto tensor = id_of<TensorId>(i);
      own.source_bytes += plan.buffer_bytes(source_of(tensor), slot);
      own.destination_bytes += plan.buffer_bytes(destination_of(tensor), slot);
    }
    own.temporary_bytes = bytes.peak_per_slot[s] - own.peak_bytes();
    out.push_back(own);
  }
  return out;
}

std::vector<RankMemory> greatest_memory(const Workload& workload) {
  std::map<Rank, RankMemory> greatest;
  std::set<const Plan*> seen;
  for (const Operation& operation : workload.operations) {
    const auto* run = std::get_if<RunPlan>(&operation.body);
    if (run == nullptr || !seen.insert(run->plan.get()).second) continue;
    for (const RankMemory& own : memory_of(*run->plan, count_bytes(*run->plan))) {
      RankMemory& most = greatest.try_emplace(own.rank, own).first->second;
      if (own.peak_bytes() > most.peak_bytes()) most = own;
    }
  }
  std::vector<RankMemory> out;
  for (const auto& [rank, own] : greatest) out.push_back(own);
  return out;
}

void draw_memory(Node panel, const std::vector<RankMemory>& ranks) {
  std::vector<Holding> holdings = holdings_of(ranks);
  if (holdings.empty() || holdings.front().peak() == 0) return;
  std::size_t shown = std::min(kMostMemoryBars, holdings.size());
  double per_byte =
      (kPanelWidth - kPanelLeft - kMemoryRight) / static_cast<double>(holdings.front().peak());
  Node svg = add_chart(panel, kPanelWidth,
                       kMemoryTop + static_cast<double>(shown) * (kMemoryBar + kMemoryGap),
                       "memory of each rank");
  for (std::size_t i = 0; i < shown; ++i)
    draw_bar(svg, holdings[i], kMemoryTop + static_cast<double>(i) * (kMemoryBar + kMemoryGap),
             per_byte);
  Legend legend(panel);
  for (std::size_t part = 0; part < kParts.size(); ++part)
    if (std::any_of(holdings.begin(), holdings.end(),
                    [&](const Holding& own) { return own.bytes[part] > 0; }))
      legend.add_entry(kParts[part].first, kParts[part].second);
  if (shown < holdings.size())
    add(panel, "p", {{"class", "aside"}},
        fmt::format("The fullest {} of {} different bars are shown.", shown, holdings.size()));
  list_holdings(panel, holdings, shown);
}

}  // namespace reshard::sim
