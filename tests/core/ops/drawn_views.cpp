// SPDX-License-Identifier: BSD-3-Clause
#include "tests/core/ops/drawn_views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reshard::test {

namespace {

using Sizes = std::vector<std::int64_t>;

// Factors whose product is n.
Sizes factors(Prng& prng, std::int64_t n, std::int64_t count) {
  Sizes out(to_index(count), 1);
  for (std::int64_t prime = 2; n > 1; ++prime)
    for (; n % prime == 0; n /= prime) out[to_index(prng.below(count))] *= prime;
  return out;
}

void split(Prng& prng, Sizes& sizes, std::size_t at) {
  Sizes pieces = factors(prng, sizes[at], 2);
  sizes[at] = pieces[0];
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(at) + 1, pieces[1]);
}

void join(Prng& prng, Sizes& sizes) {
  if (sizes.size() < 2) return;
  std::size_t at = to_index(prng.below(static_cast<std::int64_t>(sizes.size()) - 1));
  sizes[at] *= sizes[at + 1];
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

// Another shape of as many elements.
Sizes reshaped(Prng& prng, const Shape& shape) {
  Sizes out(shape.begin(), shape.end());
  std::int64_t elements = element_count(shape), form = prng.below(4);
  if (elements == 0) {
    if (prng.one_in(2)) return out;
    out.resize(to_index(prng.between(1, 4)));
    for (std::int64_t& size : out) size = prng.below(4);
    out[to_index(prng.below(static_cast<std::int64_t>(out.size())))] = 0;
    return out;
  }
  if (form == 0) return factors(prng, elements, prng.between(1, 4));
  if (form != 1)
    for (std::int64_t i = prng.between(1, 2); i > 0; --i)
      split(prng, out, to_index(prng.below(static_cast<std::int64_t>(out.size()))));
  if (form != 2)
    for (std::int64_t i = prng.between(1, 2); i > 0; --i) join(prng, out);
  if (prng.one_in(8)) out[to_index(prng.below(static_cast<std::int64_t>(out.size())))] = -1;
  return out;
}

OpPlacements placements(Prng& prng, std::size_t axes, int dims) {
  OpPlacements out(axes);
  for (OpPlacement& placement : out) {
    std::int64_t form = prng.below(20);
    if (form < 4 || dims == 0) continue;
    placement.kind = form < 14   ? OpPlacement::Kind::Shard
                     : form < 18 ? OpPlacement::Kind::StridedShard
                                 : OpPlacement::Kind::Partial;
    if (placement.kind == OpPlacement::Kind::Partial) continue;
    placement.dim = static_cast<std::int8_t>(prng.below(dims));
    if (placement.kind == OpPlacement::Kind::StridedShard)
      placement.split_factor = prng.pick<std::int64_t>({1, 2, 2, 3, 4, 4, 6, 8});
  }
  return out;
}

}  // namespace

DrawnView drawn_view(Prng& prng) {
  using Meshes = std::vector<std::vector<std::int32_t>>;
  DrawnView out;
  int dims = prng.pick<int>({1, 1, 2, 2, 2, 3, 3, 4});
  for (int d = 0; d < dims; ++d)
    out.shape.push_back(
        prng.one_in(100) ? 0 : prng.pick<std::int64_t>({1, 1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16}));
  out.mesh = prng.pick<std::vector<std::int32_t>>(
      Meshes{{2}, {3}, {4}, {2, 2}, {2, 2}, {2, 3}, {3, 2}, {4, 2}, {2, 4}, {1, 4}, {2, 2, 2}});
  out.placements = placements(prng, out.mesh.size(), dims);
  out.name = prng.pick<std::string>({"view", "view", "view", "view", "view_copy", "view_copy",
                                     "flatten", "ravel", "unflatten", "squeeze", "unsqueeze",
                                     "permute", "transpose", "movedim", "expand", "repeat", "t"});
  auto any_dim = [&](int of) { return OpValue(prng.between(-of, of - 1)); };
  auto set = [&](const char* name, OpValue value) { out.attributes.set(name, std::move(value)); };
  if (out.name == "t" && dims > 2) out.name = "transpose";
  if (out.name == "view" || out.name == "view_copy") {
    set("size", OpValue(reshaped(prng, out.shape)));
  } else if (out.name == "flatten") {
    std::int64_t first = prng.below(dims);
    set("start_dim", OpValue(first));
    set("end_dim", OpValue(prng.between(first, dims - 1) - (prng.one_in(2) ? dims : 0)));
  } else if (out.name == "unflatten") {
    std::int64_t dim = prng.below(dims);
    set("dim", OpValue(dim));
    std::int64_t length = out.shape[static_cast<int>(dim)];
    set("sizes", OpValue(length == 0 ? Sizes{0} : factors(prng, length, prng.between(1, 3))));
  } else if (out.name == "squeeze" || out.name == "unsqueeze") {
    set("dim", any_dim(dims + (out.name == "unsqueeze" ? 1 : 0)));
  } else if (out.name == "permute") {
    Sizes order;
    for (int d = 0; d < dims; ++d) order.push_back(d);
    prng.shuffle(order);
    set("dims", OpValue(order));
  } else if (out.name == "transpose") {
    set("dim0", any_dim(dims));
    set("dim1", any_dim(dims));
  } else if (out.name == "movedim") {
    set("source", any_dim(dims));
    set("destination", any_dim(dims));
  } else if (out.name == "expand" || out.name == "repeat") {
    bool expands = out.name == "expand";
    Sizes sizes(to_index(prng.below(2)), 3);
    for (std::int64_t length : out.shape)
      sizes.push_back(!expands         ? prng.pick<std::int64_t>({1, 1, 2})
                      : length == 1    ? prng.pick<std::int64_t>({1, 4, -1})
                      : prng.one_in(3) ? -1
                                       : length);
    set(expands ? "size" : "repeats", OpValue(sizes));
  }
  return out;
}

std::string text(const DrawnView& view) {
  std::string out =
      fmt::format("{} [{}] on {} ", view.name, text(view.shape), fmt::join(view.mesh, "x"));
  for (const OpPlacement& placement : view.placements)
    out += !placement.is_shard_like() ? (placement.is_replicate() ? "R" : "P")
           : placement.kind == OpPlacement::Kind::Shard
               ? fmt::format("S({})", placement.dim)
               : fmt::format("_S({},{})", placement.dim, placement.split_factor);
  for (const auto& [name, value] : view.attributes.all())
    out += fmt::format(" {}={}", name, text(value));
  return out;
}

}  // namespace reshard::test
