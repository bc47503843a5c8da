// SPDX-License-Identifier: BSD-3-Clause
#include "sim/picture/topology/wiring.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <tuple>

namespace reshard::sim {
namespace {

using Kind = Wiring::Spot::Kind;

class Placing {
 public:
  explicit Placing(const Wiring& wiring)
      : wiring_(wiring), places_(wiring.spots.size()), joined_(wiring.spots.size()) {
    auto join = [&](std::int32_t a, std::int32_t b) {
      joined_[to_index(a)].push_back(b);
      joined_[to_index(b)].push_back(a);
    };
    std::vector<std::int32_t> touching(wiring.spots.size(), 0);
    for (const Wiring::Cable& cable : wiring.cables) join(cable.from, cable.to);
    for (auto [a, b] : wiring.touching) {
      join(a, b);
      if (a < wiring.devices) ++touching[to_index(b)];
    }
    for (std::size_t s = 0; s < places_.size(); ++s)
      places_[s].touches_all = touching[s] == wiring.devices;
  }

  std::vector<SpotPlace> run() {
    find_levels();
    std::vector<std::int32_t> order(places_.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::int32_t s : order) find_span(s);
    find_those_above_all();
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      auto key = [&](std::int32_t s) {
        const SpotPlace& place = places_[to_index(s)];
        return std::tuple(wiring_.spots[to_index(s)].outside, above_all_[to_index(s)], place.level,
                          place.high - place.low, s);
      };
      return key(a) < key(b);
    });
    for (std::int32_t s : order)
      if (places_[to_index(s)].level > 0) find_track(s);
    return std::move(places_);
  }

 private:
  void find_levels() {
    std::deque<std::int32_t> reached;
    std::vector<bool> seen(places_.size(), false);
    for (std::int32_t device = 0; device < wiring_.devices; ++device) {
      places_[to_index(device)].low = device;
      places_[to_index(device)].high = device + 1;
      seen[to_index(device)] = true;
      reached.push_back(device);
    }
    while (!reached.empty()) {
      std::int32_t at = reached.front();
      reached.pop_front();
      for (std::int32_t next : joined_[to_index(at)]) {
        if (seen[to_index(next)]) continue;
        seen[to_index(next)] = true;
        places_[to_index(next)].level = places_[to_index(at)].level + 1;
        by_level_.push_back(next);
        reached.push_back(next);
      }
    }
  }

  // Spots that touch all devices, and spots above those, are placed above spots with cables to some
  // devices.
  void find_those_above_all() {
    above_all_.resize(places_.size());
    for (std::int32_t spot : by_level_)
      above_all_[to_index(spot)] =
          places_[to_index(spot)].touches_all ||
          std::any_of(joined_[to_index(spot)].begin(), joined_[to_index(spot)].end(),
                      [&](std::int32_t other) {
                        return places_[to_index(other)].level < places_[to_index(spot)].level &&
                               above_all_[to_index(other)];
                      });
  }

  // Spots are visited in any order, so each search goes all the way down to the devices.
  void find_span(std::int32_t spot) {
    SpotPlace& place = places_[to_index(spot)];
    if (place.level == 0) return;
    place.low = wiring_.devices, place.high = 0;
    std::vector<bool> seen(places_.size(), false);
    std::vector<std::int32_t> below{spot};
    while (!below.empty()) {
      std::int32_t at = below.back();
      below.pop_back();
      for (std::int32_t next : joined_[to_index(at)]) {
        const SpotPlace& lower = places_[to_index(next)];
        if (seen[to_index(next)] || lower.level >= places_[to_index(at)].level) continue;
        seen[to_index(next)] = true;
        below.push_back(next);
        if (lower.level > 0) continue;
        place.low = std::min(place.low, lower.low);
        place.high = std::max(place.high, lower.high);
      }
    }
    if (wiring_.spots[to_index(spot)].outside) place.low = 0, place.high = wiring_.devices;
  }

  bool is_below(std::int32_t spot) const {
    const Wiring::Spot& what = wiring_.spots[to_index(spot)];
    if (what.kind != Kind::Joint || what.outside || *what.path_class > PathClass::C2C) return false;
    const auto& around = joined_[to_index(spot)];
    return std::all_of(around.begin(), around.end(),
                       [&](std::int32_t other) { return other < wiring_.devices; });
  }

  // The track nearest to the devices that has room and is beyond all connected spots of lower
  // levels.
  void find_track(std::int32_t spot) {
    SpotPlace& place = places_[to_index(spot)];
    std::int32_t way = is_below(spot) ? -1 : 1, track = way;
    for (std::int32_t other : joined_[to_index(spot)])
      if (places_[to_index(other)].level < place.level)
        track = std::max(track * way, places_[to_index(other)].track * way + 1) * way;
    if (place.touches_all || wiring_.spots[to_index(spot)].outside)
      for (const SpotPlace& other : places_) track = std::max(track, other.track + 1);
    auto taken = [&](const SpotPlace& other) {
      return &other != &place && other.level > 0 && other.track == track &&
             other.low < place.high && place.low < other.high;
    };
    while (std::any_of(places_.begin(), places_.end(), taken)) track += way;
    place.track = track;
  }

  const Wiring& wiring_;
  std::vector<SpotPlace> places_;
  std::vector<std::vector<std::int32_t>> joined_;
  std::vector<std::int32_t> by_level_;  // all but devices
  std::vector<bool> above_all_;
};

}  // namespace

std::vector<SpotPlace> places_of(const Wiring& wiring) { return Placing(wiring).run(); }

}  // namespace reshard::sim
