// SPDX-License-Identifier: BSD-3-Clause
// Commodities against a definition element by element: who holds each element's addends, and who
// needs it and lacks it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/demand/commodities.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

Request request_of(const char* mesh, const char* shape, const char* from, const char* to) {
  auto ref = std::make_shared<const Mesh>(parse_mesh(mesh));
  return Request(parse_layout(shape, "f32", ref, from), parse_layout(shape, "f32", ref, to));
}

// Ranks that hold each addend (lists and their ranks ascending), ranks that need the fold and do
// not hold it, the operator and the divisor.
using Ends = std::tuple<std::vector<std::vector<Rank>>, std::vector<Rank>, ReduceOp, std::int64_t>;
using Bytes = std::map<Ends, std::int64_t>;

// Whether the rank at a position has the element at a global index.
bool has(const Layout& layout, std::int32_t position, const DimVector& index) {
  std::vector<Box> boxes = layout.boxes(position);
  Box element = box_at(index, DimVector(index.size(), 1));
  return std::any_of(boxes.begin(), boxes.end(),
                     [&](const Box& box) { return contains(box, element); });
}

void add_element(const Request& request, const DimVector& index, Bytes& out) {
  const Layout &source = request.source(), &destination = request.destination();
  std::map<std::int64_t, std::set<Rank>> holders;  // by addend
  std::int64_t zero_coordinate = 0;
  for (std::int32_t at = 0; at < source.mesh().size(); ++at) {
    if (!has(source, at, index)) continue;
    holders[request.addend_of(at)].insert(source.mesh().rank_at(at));
    zero_coordinate = request.zero_coordinate(at);
  }
  std::map<std::vector<std::int64_t>, std::set<Rank>> needers;  // by the addends to fold
  for (std::int32_t at = 0; at < destination.mesh().size(); ++at)
    if (has(destination, at, index) && request.zero_coordinate(at) == zero_coordinate)
      needers[request.addends_wanted(at)].insert(destination.mesh().rank_at(at));
  for (const auto& [addends, ranks] : needers) {
    std::vector<std::vector<Rank>> lists;
    for (std::int64_t addend : addends)
      lists.emplace_back(holders[addend].begin(), holders[addend].end());
    std::vector<Rank> lacking;
    for (Rank rank : ranks)
      if (lists.size() > 1 || !holders[addends.front()].contains(rank)) lacking.push_back(rank);
    if (lacking.empty()) continue;
    std::sort(lists.begin(), lists.end());
    out[{lists, lacking, request.fold().op, request.fold().divisor}] += size_bytes(request.dtype());
  }
}

Bytes by_element(const std::vector<Request>& requests) {
  Bytes out;
  for (const Request& request : requests) {
    if (element_count(request.shape()) == 0) continue;
    DimVector index(request.shape().size());
    do {
      add_element(request, index, out);
    } while (next_index(index, [&](int d) { return to_index(request.shape()[d]); }));
  }
  return out;
}

Bytes by_commodity(const Commodities& commodities) {
  auto ranks_at = [&](const std::vector<Slot>& slots) {
    std::vector<Rank> out;
    for (Slot slot : slots) out.push_back(commodities.ranks()[to_index(slot)]);
    std::sort(out.begin(), out.end());
    return out;
  };
  Bytes out;
  for (const Commodity& commodity : commodities.list()) {
    std::vector<std::vector<Rank>> lists;
    for (const std::vector<Slot>& holders : commodity.holders) lists.push_back(ranks_at(holders));
    std::sort(lists.begin(), lists.end());
    Ends ends{lists, ranks_at(commodity.needers), commodity.op, commodity.divisor};
    REQUIRE_FALSE(out.contains(ends));
    out[ends] = commodity.bytes;
  }
  return out;
}

// A job in which some requests occur several times.
std::vector<Request> draw_job(Prng& prng, bool boxes) {
  std::vector<Request> out;
  while (std::ssize(out) < prng.between(1, 5)) {
    if (!out.empty() && prng.one_in(3))
      out.push_back(prng.pick(out));
    else if (std::optional<Request> request =
                 boxes ? draw_request_with_boxes(prng) : draw_request(prng);
             request && element_count(request->shape()) < 2000)
      out.push_back(*std::move(request));
  }
  return out;
}

}  // namespace

TEST_CASE("drawn jobs have the commodities of their elements") {
  std::size_t compared = 0, of_several = 0;
  for (std::uint64_t seed = 1; seed <= 800 / kOneOf; ++seed) {
    Prng prng(seed);
    std::vector<Request> job = draw_job(prng, seed % 2 == 0);
    CAPTURE(seed, text_of(job));
    Demand demand(job);
    Commodities commodities(demand);
    CHECK(by_commodity(commodities) == by_element(job));
    for (const Commodity& commodity : commodities.list()) {
      std::set<TensorId> tensors;
      std::int64_t bytes = 0;
      TensorId before{0};
      for (const CommodityPart& part : commodity.parts) {
        CHECK(part.tensor >= before);
        before = part.tensor;
        tensors.insert(part.tensor);
        bytes += commodities.bytes(part);
        CHECK(part.end == bytes);
      }
      CHECK(bytes == commodity.bytes);
      of_several += tensors.size() > 1 ? 1 : 0;
      ++compared;
    }
  }
  CHECK(compared > 1500 / kOneOf);
  CHECK(of_several > 200 / kOneOf);
}

TEST_CASE("equal requests are one kind, and places follow the requests") {
  Request a = request_of("2x2", "8,8", "S(0)R", "RR"), b = request_of("4", "8", "S(0)", "R");
  std::vector<Request> job{a, b, a.named("again"), b};
  Demand demand(job);
  REQUIRE(demand.kinds().size() == 2);
  CHECK(demand.kinds()[0].tensors == std::vector{TensorId{0}, TensorId{2}});
  CHECK(demand.kinds()[1].tensors == std::vector{TensorId{1}, TensorId{3}});
  CHECK(demand.dims() == 2);
  CHECK_FALSE(demand.folds());
  auto mesh = [](const char* text, const char* ranks) {
    return std::make_shared<const Mesh>(parse_mesh(text, ranks));
  };
  Request moved(parse_layout("8", "f32", mesh("2", "5,1"), "S(0)"),
                parse_layout("8", "f32", mesh("2", "3,5"), "S(0)"));
  Demand other(moved);
  CHECK(other.ranks() == std::vector{Rank{1}, Rank{3}, Rank{5}});
  CHECK(other.slot_at() == std::vector<Slot>{2, 0, 1});
  CHECK(other.place_of() == std::vector<Slot>{1, 2, 0});
  CHECK(other.slot_of(Rank{5}) == 2);
}
