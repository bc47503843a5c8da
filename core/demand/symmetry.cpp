// SPDX-License-Identifier: BSD-3-Clause
#include "core/demand/symmetry.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

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

// The position with the given digits one higher, modulo their primes.
std::int32_t shifted(const Mesh& mesh, std::int32_t position, std::span<const Digit> digits) {
  MeshCoordinate coordinate = mesh.coordinate(position);
  for (const Digit& digit : digits) {
    std::int32_t& at = coordinate[to_index(digit.axis)];
    std::int32_t value = at / digit.place % digit.prime;
    at += ((value + 1) % digit.prime - value) * digit.place;
  }
  return mesh.position_at(coordinate);
}

// Where shifting some digits of a mesh leads its ranks.
std::vector<Rank> images(const Mesh& mesh, std::span<const Digit> digits) {
  std::vector<Rank> out;
  out.reserve(to_index(mesh.size()));
  for (std::int32_t position = 0; position < mesh.size(); ++position)
    out.push_back(mesh.rank_at(shifted(mesh, position, digits)));
  return out;
}

// The digits of all meshes of a job, in classes that shift together.
class TiedDigits {
 public:
  TiedDigits(const Demand& demand, std::int32_t devices) {
    std::vector<std::pair<std::size_t, std::size_t>> ends;  // by kind: its meshes
    for (const TensorKind& kind : demand.kinds())
      ends.emplace_back(mesh_of(kind.request().source().mesh(), devices),
                        mesh_of(kind.request().destination().mesh(), devices));
    sets_.emplace(count_);
    fixed_.assign(count_, false);
    for (std::size_t a = 0; a < meshes_.size(); ++a)
      for (std::size_t b = a + 1; b < meshes_.size(); ++b) tie_equal(meshes_[a], meshes_[b]);
    for (std::size_t k = 0; k < ends.size(); ++k)
      tie(demand.kinds()[k].request(), meshes_[ends[k].first], meshes_[ends[k].second]);
  }

  struct MeshDigits {
    const Mesh* mesh;
    std::vector<Digit> digits;
    std::size_t first;  // number of its first digit
  };
  const std::vector<MeshDigits>& meshes() const { return meshes_; }
  // Numbers of digits, one of each class that may shift.
  std::vector<std::size_t> classes() {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < count_; ++i)
      if (sets_->first(i) == i && !fixed_[i]) out.push_back(i);
    return out;
  }
  // The digits of a mesh that are in a class.
  std::vector<Digit> digits_in(const MeshDigits& of, std::size_t number) {
    std::vector<Digit> out;
    for (std::size_t i = 0; i < of.digits.size(); ++i)
      if (sets_->first(of.first + i) == number) out.push_back(of.digits[i]);
    return out;
  }

 private:
  std::size_t mesh_of(const Mesh& mesh, std::int32_t devices) {
    for (std::size_t m = 0; m < meshes_.size(); ++m)
      if (*meshes_[m].mesh == mesh) return m;
    meshes_.push_back({&mesh, digits_of(mesh, devices), count_});
    count_ += meshes_.back().digits.size();
    return meshes_.size() - 1;
  }
  void join(std::size_t a, std::size_t b) {
    bool fixed = fixed_[sets_->first(a)] || fixed_[sets_->first(b)];
    fixed_[sets_->join(a, b)] = fixed;
  }
  void fix(std::size_t digit) { fixed_[sets_->first(digit)] = true; }

  // Ties digits that shift the ranks which both meshes have in the same way.
  void tie_equal(const MeshDigits& a, const MeshDigits& b) {
    std::vector<std::pair<std::int32_t, std::int32_t>> shared;  // positions
    for (std::int32_t at = 0; at < a.mesh->size(); ++at)
      if (auto other = b.mesh->position_of(a.mesh->rank_at(at))) shared.emplace_back(at, *other);
    if (shared.empty()) return;
    std::vector<std::vector<Rank>> of_b;
    for (const Digit& digit : b.digits) of_b.push_back(images(*b.mesh, std::span(&digit, 1)));
    for (std::size_t i = 0; i < a.digits.size(); ++i) {
      std::vector<Rank> of_a = images(*a.mesh, std::span(&a.digits[i], 1));
      for (std::size_t k = 0; k < b.digits.size(); ++k)
        if (std::all_of(shared.begin(), shared.end(), [&](const auto& at) {
              return of_a[to_index(at.first)] == of_b[k][to_index(at.second)];
            }))
          join(a.first + i, b.first + k);
    }
  }

  // Numbers of the digits that cut a dim, outermost first; none unless the layout is a product.
  static std::vector<std::size_t> cutting(const Layout& layout, const MeshDigits& of, int dim) {
    std::vector<std::size_t> out;
    if (!layout.is_product()) return out;
    for (int axis : layout.stack(dim))
      for (std::size_t i = 0; i < of.digits.size(); ++i)
        if (of.digits[i].axis == axis) out.push_back(i);
    return out;
  }

  void tie(const Request& request, const MeshDigits& source, const MeshDigits& destination) {
    for (int dim = 0; dim < request.source().dims(); ++dim)
      tie_dim(request, source, destination, dim);
    // Kept addends, and shards that become addends, stay at their coordinates.
    if (request.same_mesh()) return;
    auto tie_axis = [&](int axis) {  // of meshes of one shape
      for (std::size_t i = 0; i < source.digits.size(); ++i)
        if (source.digits[i].axis == axis) join(source.first + i, destination.first + i);
    };
    for (const FoldMeaning::Axis& axis : request.fold().axes)
      if (!axis.folded) tie_axis(axis.axis);
    for (int axis : request.fold().zero_axes) tie_axis(axis);
  }

  void tie_dim(const Request& request, const MeshDigits& source, const MeshDigits& destination,
               int dim) {
    std::vector<std::size_t> a = cutting(request.source(), source, dim),
                             b = cutting(request.destination(), destination, dim);
    std::size_t i = 0;
    for (; i < a.size() && i < b.size(); ++i) {
      if (source.digits[a[i]].prime != destination.digits[b[i]].prime) break;
      join(source.first + a[i], destination.first + b[i]);
    }
    // From there on the pieces of the two sides straddle each other, unless one side has no digits
    // left.
    if (i == a.size() || i == b.size()) return;
    for (std::size_t k = i; k < a.size(); ++k) fix(source.first + a[k]);
    for (std::size_t k = i; k < b.size(); ++k) fix(destination.first + b[k]);
  }

  std::vector<MeshDigits> meshes_;
  std::size_t count_ = 0;
  std::optional<DisjointSets> sets_;
  std::vector<bool> fixed_;  // by the first digit of each class: it cannot shift
};

// Sets `known` if it is unset, and returns whether it now equals `value`.
bool agree(std::int32_t& known, std::int32_t value) {
  if (known < 0) known = value;
  return known == value;
}

class SymmetryTest {
 public:
  SymmetryTest(const Commodities& commodities, const Topology& topology)
      : commodities_(commodities), ranks_(commodities.ranks()), topology_(topology) {}

  std::optional<Symmetry::Generator> generator(TiedDigits& digits, std::size_t number) const {
    Symmetry::Generator out;
    out.slot.assign(ranks_.size(), -1);
    out.order = 1;
    for (const TiedDigits::MeshDigits& mesh : digits.meshes()) {
      std::vector<Digit> shifting = digits.digits_in(mesh, number);
      if (!shifting.empty()) out.order = shifting[0].prime;
      if (!map(*mesh.mesh, shifting, out.slot)) return std::nullopt;
    }
    if (!keeps_machine(out.slot) || !keeps_commodities(out)) return std::nullopt;
    return out;
  }

  bool keeps_nodes(const std::vector<Slot>& image) const {
    for (std::size_t slot = 0; slot < ranks_.size(); ++slot)
      if (topology_.node_of(ranks_[slot]) != topology_.node_of(ranks_[to_index(image[slot])]))
        return false;
    return true;
  }

 private:
  Slot slot_of(Rank rank) const {
    const Demand& demand = commodities_.demand();
    return demand.place_of()[to_index(demand.slot_of(rank))];
  }

  // A rank in several meshes must have one image.
  bool map(const Mesh& mesh, std::span<const Digit> digits, std::vector<Slot>& image) const {
    std::vector<Rank> to = images(mesh, digits);
    for (std::int32_t position = 0; position < mesh.size(); ++position)
      if (!agree(image[to_index(slot_of(mesh.rank_at(position)))], slot_of(to[to_index(position)])))
        return false;
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
    auto image_of = [&](const std::vector<Slot>& slots) {
      std::vector<Slot> image;
      for (Slot slot : slots) image.push_back(out.slot[to_index(slot)]);
      std::sort(image.begin(), image.end());
      return image;
    };
    for (const Commodity& commodity : commodities_.list()) {
      std::vector<std::vector<Slot>> holders;
      for (const std::vector<Slot>& slots : commodity.holders) holders.push_back(image_of(slots));
      std::sort(holders.begin(), holders.end());
      auto image = commodities_.find(std::move(holders), image_of(commodity.needers), commodity);
      if (!image || commodities_.list()[to_index(*image)].bytes != commodity.bytes) return false;
      out.commodity.push_back(*image);
    }
    return true;
  }

  const Commodities& commodities_;
  const std::vector<Rank>& ranks_;
  const Topology& topology_;
};

bool moves_commodities(const Symmetry::Generator& generator) {
  for (std::size_t i = 0; i < generator.commodity.size(); ++i)
    if (generator.commodity[i] != static_cast<std::int32_t>(i)) return true;
  return false;
}

// The size of a group with which trees of one hop per needer have 2^13 hops on average, and those
// of a job of many tensors 2^16 in total.
std::int64_t useful_size(const Commodities& commodities) {
  constexpr std::int64_t kHops = 1 << 13, kLeast = 64, kJobHops = 1 << 16;
  std::int64_t needers = 0;
  for (const Commodity& commodity : commodities.list())
    needers += static_cast<std::int64_t>(commodity.needers.size());
  if (commodities.demand().tensor_count() > 1)
    return std::max<std::int64_t>(1, kJobHops / std::max<std::int64_t>(1, needers));
  return std::max(kLeast, kHops * static_cast<std::int64_t>(commodities.list().size()) /
                              std::max<std::int64_t>(1, needers));
}

}  // namespace

Symmetry::Symmetry(const Commodities& commodities, const Topology& topology) {
  SymmetryTest test(commodities, topology);
  TiedDigits digits(commodities.demand(), topology.node().devices);
  for (std::size_t number : digits.classes())
    if (std::optional<Generator> generator = test.generator(digits, number))
      generators_.push_back(std::move(*generator));
  std::stable_partition(generators_.begin(), generators_.end(), moves_commodities);
  std::stable_partition(generators_.begin(), generators_.end(), [&](const Generator& generator) {
    return test.keeps_nodes(generator.slot);
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
