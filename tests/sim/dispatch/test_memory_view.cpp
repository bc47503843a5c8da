// SPDX-License-Identifier: BSD-3-Clause
// Views, tested by their operators: a tensor whose elements are their own addresses goes through
// the operator, and the output shows which address each element of the view must have.
#include "sim/dispatch/sharing/memory_view.h"

#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <set>

#include "core/base/errors.h"
#include "sim/operators/operators.h"
#include "tests/support/prng.h"

namespace reshard::sim {
namespace {

using test::Prng;

std::vector<std::int64_t> addresses_of(const MemoryView& view) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < element_count(view.shape); ++i)
    out.push_back(view.at(index_at(i, view.shape)));
  return out;
}

// A call on a tensor whose elements are their addresses; null where it is refused.
std::optional<ArrayResults> moved(std::string_view name, const MemoryView& input,
                                  const OpAttributes& attributes) {
  Array array = Array::of(DType::I64, input.shape, addresses_of(input));
  try {
    return compute(name, {{false, {&array}}}, attributes, {});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Whether some strides give the addresses.
bool is_affine(const std::vector<std::int64_t>& addresses, const Shape& shape) {
  MemoryView view{shape, {}, addresses.empty() ? 0 : addresses[0], 1};
  std::int64_t step = 1;
  for (int d = shape.size(); d-- > 0; step *= shape[d])
    view.strides.insert(view.strides.begin(), shape[d] > 1 && !addresses.empty()
                                                  ? addresses[to_index(step)] - addresses[0]
                                                  : 0);
  return addresses_of(view) == addresses;
}

// The views; none where the operator copies, and where they are not what came out that is said.
std::optional<std::vector<MemoryView>> checked(std::string_view name, const MemoryView& input,
                                               const OpAttributes& attributes,
                                               const ArrayResults& made) {
  std::vector<std::optional<TensorMeta>> metas;
  for (const auto& output : made) metas.push_back(TensorMeta{output->shape, DType::I64});
  auto views = views_of(name, TensorMeta{input.shape, DType::I64}, input, attributes, metas);
  CHECK((!views || views->size() == made.size()));
  for (std::size_t i = 0; i < made.size(); ++i) {
    auto addresses = values<std::int64_t>(*made[i]);
    if (!views) CHECK(!is_affine(addresses, made[i]->shape));
    if (!views) continue;
    CHECK((*views)[i].shape == made[i]->shape);
    CHECK(addresses_of((*views)[i]) == addresses);
  }
  return views;
}

struct DrawnCall {
  std::string name;
  OpAttributes attributes;
};

// Also calls that make no sense.
DrawnCall drawn_call(Prng& prng, const Shape& shape) {
  int rank = shape.size();
  auto dim = [&] { return OpValue(prng.between(-rank, rank)); };
  auto size = [&] { return OpValue(prng.between(-1, 4)); };
  DrawnCall out;
  auto call = [&](const char* name, std::initializer_list<std::pair<const char*, OpValue>> with) {
    out.name = name;
    for (const auto& [attribute, value] : with) out.attributes.set(attribute, value);
  };
  std::vector<std::int64_t> sizes, order;
  for (std::int64_t left = element_count(shape); left > 1 && sizes.size() < 4;) {
    std::int64_t part = prng.between(1, left);
    while (left % part != 0) ++part;
    sizes.push_back(part);
    left /= part;
    if (left > 1 && sizes.size() == 4) sizes.back() *= left;
  }
  for (int d = 0; d < rank; ++d)
    order.insert(order.begin() + prng.between(0, d), std::int64_t{d} - prng.below(2) * rank);
  switch (prng.below(14)) {
    case 0:
      call("select.int", {{"dim", dim()}, {"index", size()}});
      break;
    case 1:
      call("slice.Tensor", {{"dim", dim()},
                            {"start", size()},
                            {"end", OpValue(prng.between(-2, 9))},
                            {"step", OpValue(prng.between(1, 3))}});
      break;
    case 2:
      call("narrow", {{"dim", dim()}, {"start", size()}, {"length", size()}});
      break;
    case 3:
      call("split.Tensor", {{"split_size", size()}, {"dim", dim()}});
      break;
    case 4:
      call("chunk", {{"chunks", size()}, {"dim", dim()}});
      break;
    case 5:
      call("unbind.int", {{"dim", dim()}});
      break;
    case 6:
      call("diagonal",
           {{"offset", OpValue(prng.between(-2, 2))}, {"dim1", dim()}, {"dim2", dim()}});
      break;
    case 7:
      call("transpose.int", {{"dim0", dim()}, {"dim1", dim()}});
      break;
    case 8:
      call("permute", {{"dims", OpValue(order)}});
      break;
    case 9:
      call("unsqueeze", {{"dim", dim()}});
      break;
    case 10:
      call("squeeze.dim", {{"dim", dim()}});
      break;
    case 11:
      call("alias", {});
      break;
    default:
      call(prng.below(2) ? "view" : "reshape", {});
      out.attributes.set(prng.below(2) ? "size" : "shape", OpValue(sizes));
  }
  return out;
}

TEST_CASE("a view's elements lie where the operator finds them, views of views too") {
  int seen = 0, copied = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Prng prng(seed);
    Shape shape;
    for (std::int64_t d = prng.between(1, 4); d > 0; --d) shape.push_back(prng.between(1, 4));
    MemoryView view = dense_view({shape, DType::I64});
    for (int step = 0; step < 4; ++step) {
      DrawnCall call = drawn_call(prng, view.shape);
      CAPTURE(seed, step, call.name, text(view.shape));
      std::optional<ArrayResults> made = moved(call.name, view, call.attributes);
      if (!made) continue;
      auto views = checked(call.name, view, call.attributes, *made);
      ++(views ? seen : copied);
      if (views) view = (*views)[to_index(prng.below(std::ssize(*views)))];
    }
  }
  CHECK(seen > 3000);
  CHECK(copied > 50);
}

// By the bytes of every element.
std::set<std::int64_t> bytes_of(const MemoryView& view) {
  std::set<std::int64_t> out;
  for (std::int64_t address : addresses_of(view))
    for (std::int64_t byte = 0; byte < view.item_bytes; ++byte) out.insert(address + byte);
  return out;
}

TEST_CASE("views overlap, and one covers another, as their bytes say") {
  std::array<int, 2> overlaps{}, covered{};
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Prng prng(seed);
    auto drawn = [&] {
      MemoryView out{{}, {}, prng.between(0, 12), prng.between(1, 3)};
      for (std::int64_t d = prng.below(4); d > 0; --d) {
        out.shape.push_back(prng.between(prng.below(8) ? 1 : 0, 4));
        out.strides.push_back(prng.between(0, 12));
      }
      return out;
    };
    MemoryView a = drawn(), b = drawn();
    std::set<std::int64_t> of_a = bytes_of(a), of_b = bytes_of(b);
    bool meet = false, inside = true;
    for (std::int64_t byte : of_b) {
      meet |= of_a.contains(byte);
      inside &= of_a.contains(byte);
    }
    CAPTURE(seed, text(a.shape), a.strides, a.offset, text(b.shape), b.strides, b.offset);
    CHECK(overlap(a, b) == meet);
    CHECK(overlap(b, a) == meet);
    CHECK(covers(a, b) == inside);
    ++overlaps[meet];
    ++covered[inside];
  }
  for (int count : {overlaps[0], overlaps[1], covered[0], covered[1]}) CHECK(count > 300);
}

TEST_CASE("too many rows to look at: they may overlap, and none is known to cover another") {
  const Shape rows{1 << 20, 2};
  MemoryView left{rows, {16, 4}, 0, 4}, right{rows, {16, 4}, 8, 4};
  CHECK(overlap(left, right));
  CHECK_FALSE(covers(left, left));
  MemoryView few{{1 << 18, 2}, {16, 4}, 0, 4}, beside{{1 << 18, 2}, {16, 4}, 8, 4};
  CHECK_FALSE(overlap(few, beside));
  CHECK(covers(few, few));
}

TEST_CASE("contiguous copies where elements do not lie row by row") {
  auto views = [](const MemoryView& view) {
    return views_of("contiguous", {view.shape, DType::I64}, view, {},
                    {TensorMeta{view.shape, DType::I64}});
  };
  const Shape shape{3, 1, 4};
  CHECK(views({shape, {32, 8, 8}, 16, 8}));
  CHECK(views({shape, {32, 99, 8}, 16, 8}));  // one element long: its stride says nothing
  CHECK_FALSE(views({shape, {32, 8, 16}, 0, 8}));
  CHECK_FALSE(views({shape, {40, 8, 8}, 0, 8}));
}

}  // namespace
}  // namespace reshard::sim
