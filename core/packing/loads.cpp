// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/loads.h"

#include <algorithm>
#include <utility>

#include "core/base/integers.h"
#include "core/base/units.h"

namespace reshard {
namespace {

// 2^(i/64) in units of 2^-16, rounded down; the 64th root is computed by square roots.
constexpr int kFractionBits = 6;
std::uint64_t square_root(Int128 of) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 62; bit > 0; bit >>= 1) {
    Int128 next = root + bit;
    if (next * next <= of) root += bit;
  }
  return root;
}
std::vector<std::uint64_t> make_powers() {
  constexpr int kBits = 40;
  std::vector<std::uint64_t> out(std::size_t{1} << kFractionBits);
  for (std::size_t i = 0; i < out.size(); ++i) {
    Int128 power = Int128{1} << kBits, root = Int128{1} << (kBits + 1);
    for (int bit = kFractionBits - 1; bit >= 0; --bit) {
      root = square_root(root << kBits);
      if (i >> bit & 1) power = power * root >> kBits;
    }
    out[i] = static_cast<std::uint64_t>(power >> (kBits - 16));
  }
  return out;
}
std::span<const std::uint64_t> powers_of_two() {
  static const std::vector<std::uint64_t> kPowers = make_powers();
  return kPowers;
}

// 20 / ln 2 in units of 2^-6: the octaves by which a full load raises the price.
constexpr std::int64_t kSteepness = 1847;
// The price stops rising at 1.38 times the target, so it stays below 2^57.
constexpr std::int64_t kHighest = std::int64_t{40} << kFractionBits;
constexpr std::uint64_t kMaxBase = std::uint64_t{1} << 16;

}  // namespace

Loads::Loads(const RankRoutes& routes, std::int64_t symmetries, std::int64_t target_ps)
    : routes_(routes),
      target_ps_(target_ps),
      powers_(powers_of_two()),
      loads_(routes.classes().size(), 0) {
  std::int64_t fastest = 1;
  for (const RankRoutes::ResourceClass& resource_class : routes.classes())
    fastest = std::max(fastest, resource_class.bytes_per_s);
  for (const RankRoutes::ResourceClass& resource_class : routes.classes()) {
    // Bytes that one resource carries in the target time, and the number of copies that use it.
    Int128 fits =
        std::max<Int128>(1, Int128{resource_class.bytes_per_s} * target_ps / kPsPerSecond);
    Int128 copies = symmetries / resource_class.resources;
    per_byte_.push_back(static_cast<std::uint64_t>(
        std::min<Int128>((copies * kFull << 20) / fits, Int128{1} << 62)));
    base_.push_back(std::min<std::uint64_t>(
        kMaxBase, static_cast<std::uint64_t>(Int128{fastest} * 256 / resource_class.bytes_per_s)));
  }
  prices_.assign(loads_.size(), 0);
  sums_.assign(routes.class_entries() + 1, 0);
  for (std::size_t resource_class = 0; resource_class < loads_.size(); ++resource_class)
    change(static_cast<std::int32_t>(resource_class), 0);
}

std::int64_t Loads::amount(std::int32_t resource_class, std::int64_t bytes) const {
  return static_cast<std::int64_t>(
      std::min<Int128>(Int128{bytes} * per_byte_[to_index(resource_class)] >> 20, Int128{1} << 50));
}

Price Loads::price_at(std::int32_t resource_class, std::int64_t load) const {
  auto octaves =
      static_cast<std::int64_t>(std::min<Int128>(kHighest, Int128{load} * kSteepness >> 30));
  return (base_[to_index(resource_class)] *
              powers_[to_index(octaves & ((1 << kFractionBits) - 1))] >>
          16)
         << (octaves >> kFractionBits);
}

void Loads::change(std::int32_t resource_class, std::int64_t amount) {
  std::int64_t load = loads_[to_index(resource_class)] += amount;
  const Price price = price_at(resource_class, load);
  const Price more = price - std::exchange(prices_[to_index(resource_class)], price);
  for (std::uint32_t range : routes_.ranges_with(resource_class)) sums_[range] += more;
}

Price Loads::full() const {
  Price out = 0;
  for (std::size_t at = 0; at < loads_.size(); ++at)
    out = std::max(out, price_at(static_cast<std::int32_t>(at), kFull));
  return out;
}

Price Loads::top() const { return *std::max_element(prices_.begin(), prices_.end()); }

std::int32_t Loads::busiest() const {
  return static_cast<std::int32_t>(std::max_element(loads_.begin(), loads_.end()) - loads_.begin());
}

std::int64_t Loads::time_ps() const {
  return static_cast<std::int64_t>(Int128{load(busiest())} * target_ps_ / kFull);
}

std::int64_t Loads::load_at(std::int64_t time_ps) const {
  return static_cast<std::int64_t>(Int128{time_ps} * kFull / target_ps_);
}

}  // namespace reshard
