// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machine_files/used_nics.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include <fmt/core.h>

#include "core/base/ids.h"
#include "core/base/units.h"

namespace reshard::sim {
namespace {

using Index = std::int32_t;

constexpr std::int64_t kFarSlower = 8;  // times slower than the fastest: a management port
constexpr int kFarthest = 3;

class Choice {
 public:
  explicit Choice(const NodeParts& parts) : parts_(parts) {
    for (std::size_t i = 0; i < parts.nics.size(); ++i) used_.push_back(i);
  }

  UsedNics run() {
    keep_nearest();
    drop([](const NodeParts::Nic& nic) { return is_virtual(nic.name); },
         [](std::size_t, const std::string& names) {
           return fmt::format("NICs: {} are assumed to carry no tensors", names);
         });
    std::int64_t fastest = 0;
    for (std::size_t i : used_) fastest = std::max(fastest, parts_.nics[i].bytes_per_s);
    drop([&](const NodeParts::Nic& nic) { return nic.bytes_per_s <= fastest / kFarSlower; },
         [&](std::size_t count, const std::string&) {
           return fmt::format(
               "NICs: {} far slower than the {} of others {} assumed to carry no tensors", count,
               rate_text(fastest), count == 1 ? "is" : "are");
         });
    if (alike() && used_.size() > parts_.gpus.size()) drop_cards();
    for (std::size_t i : used_) out_.rates.push_back(parts_.nics[i].bytes_per_s);
    return std::move(out_);
  }

 private:
  static bool is_virtual(std::string_view name) {
    constexpr std::array<std::string_view, 10> kStarts{
        "tailscale", "docker", "veth", "virbr", "br-", "tun", "tap", "zt", "wl", "lo"};
    return std::any_of(kStarts.begin(), kStarts.end(),
                       [&](std::string_view start) { return name.starts_with(start); });
  }

  std::vector<Index> bridges_over(NodeParts::AttachPoint place) const {
    std::vector<Index> out;
    for (Index at = place.bridge; at >= 0; at = parts_.bridges[to_index(at)].above.bridge)
      out.push_back(at);
    return out;
  }
  // From nearest: the same bridge, a common bridge above, the same socket, another socket.
  int distance(const NodeParts::Gpu& gpu, const NodeParts::Nic& nic) const {
    if (gpu.place.socket != nic.place.socket) return kFarthest;
    std::vector<Index> a = bridges_over(gpu.place), b = bridges_over(nic.place);
    if (!a.empty() && !b.empty() && a.front() == b.front()) return 0;
    return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end() ? 1 : 2;
  }

  void keep_nearest() {
    std::vector<bool> near(parts_.nics.size(), false);
    for (const NodeParts::Gpu& gpu : parts_.gpus) {
      int nearest = kFarthest;
      for (const NodeParts::Nic& nic : parts_.nics) nearest = std::min(nearest, distance(gpu, nic));
      for (std::size_t i = 0; i < parts_.nics.size(); ++i)
        if (distance(gpu, parts_.nics[i]) == nearest) near[i] = true;
    }
    std::erase_if(used_, [&](std::size_t i) { return !near[i]; });
  }

  // Drops NICs, unless none would be left.
  void drop(const std::function<bool(const NodeParts::Nic&)>& is_other,
            const std::function<std::string(std::size_t, const std::string&)>& why) {
    std::vector<std::size_t> kept;
    std::string names;
    for (std::size_t i : used_)
      if (is_other(parts_.nics[i]))
        names += (names.empty() ? "" : ", ") + parts_.nics[i].name;
      else
        kept.push_back(i);
    if (kept.empty() || kept.size() == used_.size()) return;
    out_.assumed.push_back(why(used_.size() - kept.size(), names));
    used_ = std::move(kept);
  }

  bool alike() const {
    for (const NodeParts::Gpu& gpu : parts_.gpus)
      for (std::size_t i : used_)
        if (distance(gpu, parts_.nics[i]) != distance(parts_.gpus[0], parts_.nics[used_[0]]))
          return false;
    return true;
  }

  // Drops NICs that share a bridge: the ports of one card.
  void drop_cards() {
    auto on_card = [&](std::size_t i) {
      Index bridge = parts_.nics[i].place.bridge;
      return bridge >= 0 && std::any_of(used_.begin(), used_.end(), [&](std::size_t other) {
               return other != i && parts_.nics[other].place.bridge == bridge;
             });
    };
    std::vector<std::size_t> kept;
    for (std::size_t i : used_)
      if (!on_card(i)) kept.push_back(i);
    if (kept.size() < parts_.gpus.size() || kept.size() == used_.size()) return;
    out_.assumed.push_back(fmt::format(
        "NICs: {} of {} are assumed to carry tensors, but not the {} that are ports of one card",
        kept.size(), used_.size(), used_.size() - kept.size()));
    used_ = std::move(kept);
  }

  const NodeParts& parts_;
  std::vector<std::size_t> used_;
  UsedNics out_;
};

}  // namespace

UsedNics used_nics(const NodeParts& parts) { return Choice(parts).run(); }

}  // namespace reshard::sim
