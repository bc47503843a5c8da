// SPDX-License-Identifier: BSD-3-Clause
// Models in the buffers of both sides, moved by plans: the number of every element arrives where it
// belongs.
#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "core/base/errors.h"
#include "core/proof/proof.h"
#include "core/stored/generators.h"
#include "core/stored/stored_requests.h"
#include "sim/machines/presets.h"
#include "sim/store/store.h"
#include "sim/study/studies.h"
#include "tests/support/any_planner.h"
#include "tests/support/drawn_models.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::test;
using Catch::Contains;

namespace {

using Numbers = std::vector<std::int64_t>;

// Calls visit(element of the shard, element of the buffer).
template <class Visit>
void for_each_element(const StoredPlace& place, const Shape& shard, Visit&& visit) {
  for (std::int64_t i = 0; i < place.view.count(); ++i) {
    DimVector at = index_at(i, place.view.extents);
    std::int64_t local = 0, stored = place.view.offset;
    for (int d = 0; d < at.size(); ++d) {
      local = local * shard[d] + place.local.lo[d] + at[d];
      stored += at[d] * place.view.strides[d];
    }
    visit(to_index(local), to_index(stored));
  }
}

// Moves all numbers by the plan, in the store.
ElementNumbers moved(const Plan& plan, const StoredRequests& stored, const ElementNumbers& from) {
  sim::Store store;
  std::unique_ptr<PreparedPlan> prepared = store.prepare(plan);
  ElementNumbers out;
  for (const StoredBuffer& buffer : stored.destination().buffers())
    out.emplace_back(to_index(element_count(buffer.shape)), -1);
  for_each_tensor(plan.tensors, [&](TensorId tensor, const Request& request) {
    prepared->fill(
        [&](Rank rank, std::span<std::byte> bytes) {
          Shape shard = request.source().local_shape(*request.source().mesh().position_of(rank));
          for (const StoredPlace& place : stored.source_places(tensor, rank))
            for_each_element(place, shard, [&](std::size_t local, std::size_t at) {
              auto number = static_cast<std::int16_t>(from[to_index(place.buffer)][at]);
              std::memcpy(bytes.data() + 2 * local, &number, 2);
            });
        },
        tensor);
  });
  prepared->run();
  for_each_tensor(plan.tensors, [&](TensorId tensor, const Request& request) {
    prepared->take(
        [&](Rank rank, std::span<const std::byte> bytes) {
          const Layout& layout = request.destination();
          Shape shard = layout.local_shape(*layout.mesh().position_of(rank));
          for (const StoredPlace& place : stored.destination_places(tensor, rank))
            for_each_element(place, shard, [&](std::size_t local, std::size_t at) {
              std::int16_t number = 0;
              std::memcpy(&number, bytes.data() + 2 * local, 2);
              REQUIRE(out[to_index(place.buffer)][at] == -1);
              out[to_index(place.buffer)][at] = number;
            });
        },
        tensor);
  });
  return out;
}

ModelTensorId add(ModelTensors& tensors, const char* name, Shape shape) {
  return tensors.add(name, shape, DType::BF16);
}

void hold_whole(Stored& side, std::int32_t rank, ModelTensorId tensor) {
  FusedBuffer buffer;
  buffer.name = side.tensors()[tensor].name;
  buffer.mesh = std::make_shared<const Mesh>(Mesh::row_major({1}, Rank{rank}));
  buffer.placements.placements = {Placement::replicate()};
  buffer.blocks = {{{{tensor, 1}}, 0, 1}};
  add_fused(side, buffer);
}

}  // namespace

TEST_CASE("Drawn models are moved by the plans of their requests, every element") {
  Prng prng(3);
  sim::StudyOptions options;
  options.transport.kind = TransportKind::Ideal;
  auto topology = std::make_shared<const Topology>(sim::find_topology("dgx-h100:2"));
  std::map<std::string, std::unique_ptr<sim::Studies>> studies;
  for (const PlannerRow* planner : planners_of_all_layouts())
    studies[std::string(planner->name)] =
        std::make_unique<sim::Studies>(topology, *planner, options);
  int repeated = 0, padded = 0;
  for (int i = 0; i < 3'000 / kOneOf; ++i) {
    DrawnModel model = draw_model(prng);
    StoredRequests stored(*model.source, *model.destination);
    ElementNumbers from = element_numbers(*model.source),
                   expected = element_numbers(*model.destination);
    INFO("case " << i);
    // Every planner is asked for some; the studies prove every plan.
    for (auto& [name, study] : studies) {
      if (name != "p2p" && !prng.one_in(8)) continue;
      INFO(name);
      REQUIRE(moved(study->of(stored.requests())->plan(), stored, from) == expected);
    }
    std::set<std::string> names;
    for (const Request& request : stored.requests()) {
      repeated += names.insert(request.name()).second ? 0 : 1;
      for (std::int32_t p = 0; p < request.destination().mesh().size(); ++p)
        padded += request.destination().padding(p).empty() ? 0 : 1;
    }
  }
  CHECK(repeated > 100 / kOneOf);
  CHECK(padded > 20 / kOneOf);
}

TEST_CASE("What the source lacks is refused by the tensor's name") {
  ModelTensors tensors;
  ModelTensorId a = add(tensors, "a", {4, 2}), b = add(tensors, "b", {4, 2});
  Stored source(tensors), destination(tensors);
  CHECK_THROWS_WITH(StoredRequests(source, destination), Contains("side 'from'"));
  hold_whole(source, 0, a);
  CHECK_THROWS_WITH(StoredRequests(source, destination), Contains("side 'to'"));
  hold_whole(destination, 1, a);
  CHECK(StoredRequests(source, destination).requests().size() == 1);
  hold_whole(destination, 1, b);
  CHECK_THROWS_WITH(StoredRequests(source, destination), Contains("tensor 'b': "));
}

TEST_CASE("Tensors that lie alike share their layouts") {
  ModelTensors tensors;
  ModelTensorId a = add(tensors, "a", {4, 2}), b = add(tensors, "b", {4, 2}),
                wide = add(tensors, "wide", {4, 3});
  Stored source(tensors), destination(tensors);
  for (ModelTensorId id : {a, b, wide}) {
    hold_whole(source, 0, id);
    hold_whole(destination, 1, id);
  }
  hold_whole(source, 2, wide);
  StoredRequests stored(source, destination);
  auto boxes = [&](std::size_t i) {
    const Request& request = stored.requests()[i];
    return std::pair(request.source().explicit_boxes(), request.destination().explicit_boxes());
  };
  REQUIRE(stored.requests().size() == 3);
  CHECK(boxes(0) == boxes(1));
  CHECK((boxes(0).first != boxes(2).first && boxes(0).second != boxes(2).second));
  CHECK(stored.requests()[1].name() == "b");
  CHECK(stored.tensor_of(TensorId{1}) == b);
}

TEST_CASE("A scalar is moved as a tensor of one element") {
  ModelTensors tensors;
  ModelTensorId scale = add(tensors, "scale", {});
  Stored source(tensors), destination(tensors);
  for (auto [side, rank, offset] : {std::tuple(&source, 0, 0), std::tuple(&destination, 1, 3)})
    side->add({Rank{rank}, "b", {4}, DType::BF16, {{scale, Box{}, offset, DimVector{}}}});
  StoredRequests stored(source, destination);
  CHECK(stored.requests().front().shape() == Shape{1});
  std::vector<StoredPlace> places = stored.destination_places(TensorId{0}, Rank{1});
  REQUIRE(places.size() == 1);
  CHECK((places[0].view.offset == 3 && places[0].view.extents == Shape{1}));
}
