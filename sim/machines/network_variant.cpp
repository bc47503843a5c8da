// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machines/network_variant.h"
#include "core/topology/machine_lines.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"
#include "sim/machine_files/node_parts.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kNics = "nics=", kOversubscription = "oversubscription=", kGpu = "gpu=";

using Where = RouteLine::Where;

[[noreturn]] void refuse(const TopologyDescription& description, const std::string& what) {
  throw InputError(fmt::format("topology {}: {}", description.name, what));
}

class Network {
 public:
  explicit Network(TopologyDescription& description) : machine_(description) {
    auto found = std::find_if(machine_.routes.begin(), machine_.routes.end(),
                              [](const RouteLine& route) { return route.where == Where::Between; });
    if (found == machine_.routes.end())
      refuse(machine_,
             "expected a machine of several nodes for nics or oversubscription, found one without "
             "a route between nodes");
    rule_ = &found->rule;
    for (const Hop& hop : rule_->hops) {
      own_ = own_ || hop.kind == Hop::Kind::SourceOut;
      if (hop.kind == Hop::Kind::SourceOut) out_ = machine_.ports[hop.index].out_bytes_per_s;
      if (hop.kind == Hop::Kind::DestinationIn) in_ = machine_.ports[hop.index].in_bytes_per_s;
    }
    count_ = machine_.devices;
    if (own_) return;
    for (const Hop& hop : rule_->hops) {
      if (hop.kind == Hop::Kind::SourceNodeShared) out_ = machine_.shared[hop.index].bytes_per_s;
      if (hop.kind == Hop::Kind::DestinationNodeShared)
        in_ = machine_.shared[hop.index].bytes_per_s;
    }
    if (out_ == 0 || in_ == 0)
      refuse(machine_, "expected NICs on the route between nodes, found none");
    std::int64_t each = std::min(out_, rule_->cap_bytes_per_s.value_or(out_));
    count_ = out_ / each;
    out_ /= count_;
    in_ /= count_;
  }

  void keep_nics(std::int64_t count) {
    if (count > count_)
      refuse(machine_,
             fmt::format("expected nics from 1 to the {} of a node, found {}", count_, count));
    if (count == count_) return;
    count_ = count;
    std::int64_t out = out_ * count, in = in_ * count;
    rule_->cap_bytes_per_s.reset();
    if (count > 1) rule_->cap_bytes_per_s = out_;
    if (!own_) {
      set_shared(Hop::Kind::SourceNodeShared, out);
      set_shared(Hop::Kind::DestinationNodeShared, in);
      return;
    }
    for (Hop& hop : rule_->hops) {
      if (hop.kind == Hop::Kind::SourceOut)
        hop = shared("nics-out", out, Hop::Kind::SourceNodeShared);
      if (hop.kind == Hop::Kind::DestinationIn)
        hop = shared("nics-in", in, Hop::Kind::DestinationNodeShared);
    }
    own_ = false;
    drop_uncrossed(machine_);
  }

  void oversubscribe(std::int64_t millionths) {
    auto part = [&](std::int64_t rate) {
      Int128 all = Int128{rate} * count_ * kRatioOne / millionths;
      return static_cast<std::int64_t>(std::clamp<Int128>(all, 1, kMaxBytes));
    };
    Hop up = shared("uplinks-out", part(out_), Hop::Kind::SourceNodeShared),
        down = shared("uplinks-in", part(in_), Hop::Kind::DestinationNodeShared);
    auto first_there = std::find_if(rule_->hops.begin(), rule_->hops.end(), [](const Hop& hop) {
      return hop.kind == Hop::Kind::DestinationIn || hop.kind == Hop::Kind::DestinationNodeShared ||
             hop.kind == Hop::Kind::Fabric;
    });
    rule_->hops.insert(first_there, up);
    auto from_there = std::find_if(rule_->hops.begin(), rule_->hops.end(), [](const Hop& hop) {
      return hop.kind == Hop::Kind::DestinationIn || hop.kind == Hop::Kind::DestinationNodeShared;
    });
    rule_->hops.insert(from_there, down);
    std::int64_t narrow = std::min(part(out_), part(in_));
    if (rule_->cap_bytes_per_s && *rule_->cap_bytes_per_s >= narrow) rule_->cap_bytes_per_s.reset();
    if (rule_->hops.size() > kMaxHops)
      refuse(machine_, "expected room for two more hops, found none");
  }

 private:
  Hop shared(std::string name, std::int64_t bytes_per_s, Hop::Kind kind) {
    auto taken = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const auto& part) { return part.name == name; });
    };
    while (taken(machine_.ports) || taken(machine_.shared) || taken(machine_.fabric) ||
           taken(machine_.groups))
      name += "-more";
    machine_.shared.push_back({std::move(name), bytes_per_s});
    return {kind, static_cast<std::int32_t>(machine_.shared.size()) - 1};
  }
  void set_shared(Hop::Kind kind, std::int64_t bytes_per_s) {
    for (const Hop& hop : rule_->hops)
      if (hop.kind == kind) machine_.shared[hop.index].bytes_per_s = bytes_per_s;
  }

  TopologyDescription& machine_;
  RouteRule* rule_;
  bool own_ = false;               // each GPU has a NIC
  std::int64_t count_ = 0;         // NICs per node
  std::int64_t out_ = 0, in_ = 0;  // of one NIC
};

}  // namespace

NetworkVariant take_network_variant(std::string_view& spec) {
  NetworkVariant out;
  for (;;) {
    std::size_t comma = spec.rfind(',');
    if (comma == std::string_view::npos) return out;
    std::string_view word = spec.substr(comma + 1);
    if (word.starts_with(kNics) && !out.nics) {
      Cursor cursor(word.substr(kNics.size()), "topology: nics");
      out.nics = cursor.integer("NICs of a node", 1, kMaxRanks);
      cursor.expect_end();
    } else if (word.starts_with(kOversubscription) && !out.oversubscription) {
      std::string_view number = word.substr(kOversubscription.size());
      out.oversubscription = parse_ratio(number, "topology: oversubscription");
      if (*out.oversubscription < kRatioOne)
        throw InputError(fmt::format("topology: oversubscription: expected 1 or more, found {}",
                                     quoted(number)));
    } else if (word.starts_with(kGpu) && !out.gpu) {
      out.gpu = users_gpu(word.substr(kGpu.size()));
    } else if (word.starts_with(kNics) || word.starts_with(kOversubscription) ||
               word.starts_with(kGpu)) {
      throw InputError(fmt::format("topology: expected {} once, found it twice",
                                   word.substr(0, word.find('='))));
    } else {
      return out;
    }
    spec = spec.substr(0, comma);
  }
}

void change_network(TopologyDescription& description, const NetworkVariant& variant) {
  if (!variant.nics && !variant.oversubscription) return;
  Network network(description);
  if (variant.nics) network.keep_nics(*variant.nics);
  if (variant.oversubscription && *variant.oversubscription > kRatioOne)
    network.oversubscribe(*variant.oversubscription);
  if (variant.nics) description.variant += fmt::format(",nics={}", *variant.nics);
  if (variant.oversubscription)
    description.variant += fmt::format(",oversubscription={}",
                                       figure_text(FigureUnit::Ratio, *variant.oversubscription));
}

}  // namespace reshard::sim
