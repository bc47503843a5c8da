// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/symmetry.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "core/base/disjoint_sets.h"

namespace reshard {
namespace {

// A prime factor of an axis, as a digit of the coordinate c: (c / place) % prime.
struct Digit {
  int axis;
  std::int32_t prime, place;
};

// The prime factors of `size`, ascending, as digits of coordinates that are multiples of `place`.
void add_digits(std::vector<Digit>& out, int axis, std::int32_t size, std::int32_t place) {
  for (std::int32_t prime = 2; size > 1;) {
    if (prime * prime > size) prime = size;
    if (size % prime != 0) {
      ++prime;
      continue;
    }
    size /= prime;
    out.push_back({axis, prime, size * place});
  }
}

// The digits of each axis, first those that lead to other nodes, if a node's devices are
// consecutive.
std::vector<Digit> digits_of(const Mesh& mesh, std::int32_t devices) {
  std::vector<std::int32_t> near(to_index(mesh.axes()));  // by axis: coordinates within a node
  std::int32_t inner = 1;
  for (int axis = mesh.axes(); axis-- > 0; inner *= mesh.axis_size(axis))
    near[to_index(axis)] = std::gcd(mesh.axis_size(axis), std::max(1, devices / inner));
  std::vector<Digit> out;
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    std::int32_t within = near[to_index(axis)];
    add_digits(out, axis, mesh.axis_size(axis) / within, within);
    add_digits(out, axis, within, 1);
  }
  return out;
}

// The digits of both meshes, in classes that shift together.
class TiedDigits {
 public:
  TiedDigits(const Request& request, std::int32_t devices)
      : source_(digits_of(request.source().mesh(), devices)),
        destination_(digits_of(request.destination().mesh(), devices)),
        same_mesh_(request.same_mesh()),
        sets_(source_.size() + (same_mesh_ ? 0 : destination_.size())),
        fixed_(sets_.size(), false) {
    for (int dim = 0; dim < request.source().dims(); ++dim) tie(request, dim);
    // Kept addends, and shards that become addends, stay at their coordinates.
    if (same_mesh_) return;
    for (const FoldMeaning::Axis& axis : request.fold().axes)
      if (!axis.folded) tie_axis(axis.axis);
    for (int axis : request.fold().zero_axes) tie_axis(axis);
  }

  // The digits of one class in the source's mesh and in the destination's.
  struct Class {
    std::vector<Digit> source, destination;
  };
  std::vector<Class> classes() {
    std::vector<Class> by_root(sets_.size());
    for (std::size_t i = 0; i < source_.size(); ++i)
      by_root[sets_.first(i)].source.push_back(source_[i]);
    for (std::size_t i = 0; i < destination_.size(); ++i)
      by_root[sets_.first(destination_at(i))].destination.push_back(destination_[i]);
    std::vector<Class> out;
    for (std::size_t i = 0; i < by_root.size(); ++i)
      if (sets_.first(i) == i && !fixed_[i]) out.push_back(std::move(by_root[i]));
    return out;
  }

 private:
  std::size_t destination_at(std::size_t i) const { return same_mesh_ ? i : source_.size() + i; }
  void join(std::size_t a, std::size_t b) {
    bool fixed = fixed_[sets_.first(a)] || fixed_[sets_.first(b)];
    fixed_[sets_.join(a, b)] = fixed;
  }

  // Indices of the digits that cut a dim, outermost first.
  static std::vector<std::size_t> cutting(const Layout& layout, const std::vector<Digit>& digits,
                                          int dim) {
    std::vector<std::size_t> out;
    for (int axis : layout.stack(dim))
      for (std::size_t i = 0; i < digits.size(); ++i)
        if (digits[i].axis == axis) out.push_back(i);
    return out;
  }

  void tie(const Request& request, int dim) {
    std::vector<std::size_t> a = cutting(request.source(), source_, dim),
                             b = cutting(request.destination(), destination_, dim);
    std::size_t i = 0;
    for (; i < a.size() && i < b.size(); ++i) {
      if (source_[a[i]].prime != destination_[b[i]].prime) break;
      join(a[i], destination_at(b[i]));
    }
    // From there on the pieces of the two sides straddle each other, unless one side has no digits
    // left.
    if (i == a.size() || i == b.size()) return;
    for (std::size_t k = i; k < a.size(); ++k) fixed_[sets_.first(a[k])] = true;
    for (std::size_t k = i; k < b.size(); ++k) fixed_[sets_.first(destination_at(b[k]))] = true;
  }

  // For meshes of one shape.
  void tie_axis(int axis) {
    for (std::size_t i = 0; i < source_.size(); ++i)
      if (source_[i].axis == axis) join(i, destination_at(i));
  }

  std::vector<Digit> source_, destination_;
  bool same_mesh_;
  DisjointSets sets_;
  std::vector<bool> fixed_;  // by the first digit of each class: it cannot shift
};

// The position with the given digits one higher, modulo their primes.
std::int32_t shifted(const Mesh& mesh, std::int32_t position, const std::vector<Digit>& digits) {
  MeshCoordinate coordinate = mesh.coordinate(position);
  for (const Digit& digit : digits) {
    std::int32_t& at = coordinate[to_index(digit.axis)];
    std::int32_t value = at / digit.place % digit.prime;
    at += ((value + 1) % digit.prime - value) * digit.place;
  }
  return mesh.position_at(coordinate);
}

// Sets `known` if it is unset, and returns whether it now equals `value`.
bool agree(std::int32_t& known, std::int32_t value) {
  if (known < 0) known = value;
  return known == value;
}

class SymmetryTest {
 public:
  SymmetryTest(const std::vector<Rank>& ranks, const Topology& topology,
               const Commodities& commodities)
      : ranks_(ranks), topology_(topology), commodities_(commodities) {
    for (std::size_t slot = 0; slot < ranks.size(); ++slot)
      slot_of_.emplace(ranks[slot], static_cast<Slot>(slot));
  }

  std::optional<Symmetry::Generator> generator(const Request& request,
                                               const TiedDigits::Class& digits) {
    Symmetry::Generator out;
    out.slot.assign(ranks_.size(), -1);
    if (!map(request.source().mesh(), digits.source, out.slot) ||
        !map(request.destination().mesh(), digits.destination, out.slot) ||
        !keeps_machine(out.slot) || !keeps_commodities(out))
      return std::nullopt;
    out.order = digits.source.empty() ? digits.destination[0].prime : digits.source[0].prime;
    return out;
  }

  bool keeps_nodes(const std::vector<Slot>& image) const {
    for (std::size_t slot = 0; slot < ranks_.size(); ++slot)
      if (topology_.node_of(ranks_[slot]) != topology_.node_of(ranks_[to_index(image[slot])]))
        return false;
    return true;
  }

 private:
  Slot slot_of(Rank rank) const { return slot_of_.at(rank); }

  // A rank in both meshes must have one image.
  bool map(const Mesh& mesh, const std::vector<Digit>& digits, std::vector<Slot>& image) const {
    for (std::int32_t position = 0; position < mesh.size(); ++position) {
      Slot slot = slot_of(mesh.rank_at(position));
      if (!agree(image[to_index(slot)], slot_of(mesh.rank_at(shifted(mesh, position, digits)))))
        return false;
    }
    return true;
  }

  bool keeps_machine(const std::vector<Slot>& image) const {
    std::vector<std::int32_t> node_image(to_index(topology_.nodes()), -1);
    std::vector<bool> is_image(ranks_.size(), false);
    for (std::size_t slot = 0; slot < ranks_.size(); ++slot) {
      Rank rank = ranks_[slot], to = ranks_[to_index(image[slot])];
      if (topology_.class_of(rank) != topology_.class_of(to) || is_image[to_index(image[slot])] ||
          !agree(node_image[to_index(topology_.node_of(rank))], topology_.node_of(to)))
        return false;
      is_image[to_index(image[slot])] = true;
    }
    // Two nodes must not map to one.
    std::sort(node_image.begin(), node_image.end());
    auto used = std::upper_bound(node_image.begin(), node_image.end(), -1);
    return std::adjacent_find(used, node_image.end()) == node_image.end();
  }

  bool keeps_commodities(Symmetry::Generator& out) const {
    std::vector<std::int32_t> from, to;  // images of Commodity::from and ::to
    auto image_of = [](std::vector<std::int32_t>& images, std::int32_t of) -> std::int32_t& {
      if (to_index(of) >= images.size()) images.resize(to_index(of) + 1, -1);
      return images[to_index(of)];
    };
    for (std::size_t slot = 0; slot < ranks_.size(); ++slot) {
      std::size_t image = to_index(out.slot[slot]);
      std::int32_t held = commodities_.held_from[slot], needed = commodities_.needed_to[slot];
      if ((held < 0) != (commodities_.held_from[image] < 0) ||
          (needed < 0) != (commodities_.needed_to[image] < 0) ||
          (held >= 0 && !agree(image_of(from, held), commodities_.held_from[image])) ||
          (needed >= 0 && !agree(image_of(to, needed), commodities_.needed_to[image])))
        return false;
    }
    for (const Commodity& commodity : commodities_.list) {
      auto key = std::pair(image_of(from, commodity.from), image_of(to, commodity.to));
      auto at = std::lower_bound(
          commodities_.list.begin(), commodities_.list.end(), key,
          [](const Commodity& c, const auto& k) { return std::pair(c.from, c.to) < k; });
      if (at == commodities_.list.end() || std::pair(at->from, at->to) != key ||
          at->bytes != commodity.bytes || at->needers.size() != commodity.needers.size() ||
          !keeps_addends(commodity, *at, out.slot))
        return false;
      out.commodity.push_back(static_cast<std::int32_t>(at - commodities_.list.begin()));
    }
    return true;
  }

  static bool keeps_addends(const Commodity& commodity, const Commodity& image,
                            const std::vector<Slot>& slots) {
    auto holds = [](const std::vector<Slot>& holders, Slot slot) {
      return std::binary_search(holders.begin(), holders.end(), slot);
    };
    return std::all_of(
        commodity.holders.begin(), commodity.holders.end(), [&](const std::vector<Slot>& holders) {
          return std::any_of(image.holders.begin(), image.holders.end(), [&](const auto& other) {
            return holds(other, slots[to_index(holders[0])]);
          });
        });
  }

  const std::vector<Rank>& ranks_;
  const Topology& topology_;
  const Commodities& commodities_;
  std::map<Rank, Slot> slot_of_;
};

bool moves_commodities(const Symmetry::Generator& generator) {
  for (std::size_t i = 0; i < generator.commodity.size(); ++i)
    if (generator.commodity[i] != static_cast<std::int32_t>(i)) return true;
  return false;
}

// The size of a group with which trees of one hop per needer have 2^13 hops on average.
std::int64_t useful_size(const Commodities& commodities) {
  constexpr std::int64_t kHops = 1 << 13, kLeast = 64;
  std::int64_t needers = 0;
  for (const Commodity& commodity : commodities.list)
    needers += static_cast<std::int64_t>(commodity.needers.size());
  return std::max(kLeast, kHops * static_cast<std::int64_t>(commodities.list.size()) /
                              std::max<std::int64_t>(1, needers));
}

}  // namespace

Symmetry::Symmetry(const Request& request, const std::vector<Rank>& ranks, const Topology& topology,
                   const Commodities& commodities) {
  SymmetryTest candidate(ranks, topology, commodities);
  for (const TiedDigits::Class& digits : TiedDigits(request, topology.node().devices).classes())
    if (std::optional<Generator> generator = candidate.generator(request, digits))
      generators_.push_back(std::move(*generator));
  std::stable_partition(generators_.begin(), generators_.end(), moves_commodities);
  std::stable_partition(generators_.begin(), generators_.end(), [&](const Generator& generator) {
    return candidate.keeps_nodes(generator.slot);
  });
  std::int64_t useful = useful_size(commodities);
  while (size() > useful) generators_.pop_back();
}

std::int64_t Symmetry::size() const {
  std::int64_t size = 1;
  for (const Generator& generator : generators_) size *= generator.order;
  return size;
}

SymmetryWalk::SymmetryWalk(const Symmetry& symmetry, std::size_t slots, std::size_t commodities)
    : symmetry_(symmetry),
      power_(symmetry.generators().size(), 0),
      slots_(slots),
      commodities_(commodities) {
  std::iota(slots_.begin(), slots_.end(), Slot{0});
  std::iota(commodities_.begin(), commodities_.end(), std::int32_t{0});
}

bool SymmetryWalk::next() {
  for (std::size_t g = 0; g < power_.size(); ++g) {
    // Applied as many times as its order, a generator is back at the identity.
    const Symmetry::Generator& generator = symmetry_.generators()[g];
    for (Slot& slot : slots_) slot = generator.slot[to_index(slot)];
    for (std::int32_t& commodity : commodities_)
      commodity = generator.commodity[to_index(commodity)];
    if (++power_[g] < generator.order) return true;
    power_[g] = 0;
  }
  return false;
}

}  // namespace reshard
