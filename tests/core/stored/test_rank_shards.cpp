// SPDX-License-Identifier: BSD-3-Clause
// Plans run on the buffers of drawn models: every element arrives, and nothing else is written.
#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <set>

#include "core/planners/planner.h"
#include "core/stored/rank_shards.h"
#include "sim/machines/presets.h"
#include "sim/store/store.h"
#include "sim/study/studies.h"
#include "tests/support/drawn_models.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// Elements are numbers of 16 bits.
using Memory = std::vector<std::vector<std::int16_t>>;  // by buffer

Memory memory_of(const ElementNumbers& numbers) {
  Memory out;
  for (const auto& buffer : numbers) out.emplace_back(buffer.begin(), buffer.end());
  return out;
}

struct Ran {
  int in_place = 0, staged = 0;
};

// Runs the plan of all ranks on shards that are lent.
Ran run(const Plan& plan, const StoredRequests& stored, Memory& from, Memory& to) {
  Ran out;
  sim::StoreMemory store(plan);
  std::vector<std::unique_ptr<RankShards>> ranks;
  for (std::size_t s = 0; s < plan.slot_count(); ++s) {
    auto slot = static_cast<Slot>(s);
    const RankShards& shards = *ranks.emplace_back(std::make_unique<RankShards>(
        stored, plan.rank_of(slot), [&](const Stored& side, StoredBufferId buffer) {
          Memory& memory = &side == &stored.source() ? from : to;
          return reinterpret_cast<std::byte*>(memory[to_index(buffer)].data());
        }));
    shards.gather();
    std::int64_t elsewhere = shards.staged_bytes();
    for_each_tensor(plan.tensors, [&](TensorId tensor, const Request&) {
      store.lend_source(source_of(tensor), slot, shards.source(tensor));
      store.lend_destination(destination_of(tensor), slot, shards.destination(tensor));
      elsewhere -= static_cast<std::int64_t>(shards.source(tensor).size() +
                                             shards.destination(tensor).size());
    });
    (elsewhere < 0 ? out.in_place : out.staged) += 1;
  }
  Forwarding forwarding(plan);
  sim::run_steps(plan, forwarding, store);
  for (const auto& shards : ranks) shards->scatter();
  return out;
}

Stored& add(Stored& side, int rank, const char* name, Shape shape, DType dtype,
            std::vector<StoredPart> parts, bool converts = false) {
  side.add({Rank{rank}, name, std::move(shape), dtype, std::move(parts), converts});
  return side;
}

}  // namespace

TEST_CASE("Plans run on the buffers of drawn models") {
  Prng prng(11);
  sim::StudyOptions options;
  options.transport.kind = TransportKind::Ideal;
  auto topology = std::make_shared<const Topology>(sim::find_topology("dgx-h100:2"));
  std::map<std::string, std::unique_ptr<sim::Studies>> studies;
  for (const char* planner : {"p2p", "packed"})
    studies[planner] = std::make_unique<sim::Studies>(topology, find_planner(planner), options);
  Ran all;
  for (int i = 0; i < 2'000 / kOneOf; ++i) {
    DrawnModel model = draw_unconverted_model(prng);
    StoredRequests stored(*model.source, *model.destination);
    Memory from = memory_of(element_numbers(*model.source));
    const Memory before = from, expected = memory_of(element_numbers(*model.destination));
    Memory to;
    for (const auto& buffer : expected) to.emplace_back(buffer.size(), std::int16_t{-1});
    INFO("case " << i);
    const char* planner = prng.one_in(4) ? "packed" : "p2p";
    Ran ran = run(studies[planner]->of(stored.requests())->plan(), stored, from, to);
    REQUIRE(to == expected);
    REQUIRE(from == before);
    all.in_place += ran.in_place;
    all.staged += ran.staged;
  }
  CHECK(all.in_place > 500 / kOneOf);
  CHECK(all.staged > 500 / kOneOf);
}

TEST_CASE("A shard is a stretch of its buffer only if it is one, dense and of its dtype") {
  ModelTensors tensors;
  ModelTensorId w = tensors.add("w", {4, 2}, DType::BF16);
  auto stretch = [&](Shape shape, DType dtype, std::vector<StoredPart> parts) {
    Stored source(tensors), destination(tensors);
    add(source, 0, "w", {4, 2}, DType::BF16, {{w, box_of({4, 2}), 0, {2, 1}}});
    bool converts = dtype != DType::BF16;
    add(destination, 1, "b", std::move(shape), dtype, std::move(parts), converts);
    StoredRequests requests(source, destination);
    std::vector<StoredPlace> places = requests.destination_places(TensorId{0}, Rank{1});
    return stretch_of(requests, destination, TensorId{0}, Rank{1}, places);
  };
  auto whole = stretch({20}, DType::BF16, {{w, box_of({4, 2}), 5, {2, 1}}});
  REQUIRE(whole);
  CHECK((whole->buffer == StoredBufferId{0} && whole->offset == 5));
  CHECK_FALSE(stretch({20}, DType::F32, {{w, box_of({4, 2}), 5, {2, 1}}}));
  CHECK_FALSE(stretch({20}, DType::BF16, {{w, box_of({4, 2}), 0, {3, 1}}}));
  CHECK_FALSE(stretch({2, 4}, DType::BF16, {{w, box_of({4, 2}), 0, {1, 4}}}));
  // Rows 0 and 2: the shard is their one box after the other, the buffer has them in turn.
  CHECK_FALSE(stretch({2, 2}, DType::BF16,
                      {{w, {{0, 0}, {1, 2}}, 2, {2, 1}}, {w, {{2, 0}, {3, 2}}, 0, {2, 1}}}));
  // A row's stride does not matter if there is one row.
  CHECK(stretch({2}, DType::BF16, {{w, {{1, 0}, {2, 2}}, 0, {0, 1}}}));
}

TEST_CASE("Ranks convert on the way out of their buffers and into them") {
  ModelTensors tensors;
  ModelTensorId w = tensors.add("w", {2, 2}, DType::BF16);
  Stored source(tensors), destination(tensors);
  add(source, 0, "master", {2, 2}, DType::F32, {{w, box_of({2, 2}), 0, {2, 1}}}, true);
  add(destination, 1, "w", {5}, DType::F16, {{w, box_of({2, 2}), 1, {1, 2}}}, true);
  StoredRequests requests(source, destination);
  float held[4] = {1, 2.0078125f, -3, 1e30f};
  std::uint16_t got[5] = {7, 7, 7, 7, 7};
  auto memory = [&](const Stored& side, StoredBufferId) {
    return &side == &source ? reinterpret_cast<std::byte*>(held)
                            : reinterpret_cast<std::byte*>(got);
  };
  RankShards from(requests, Rank{0}, memory), to(requests, Rank{1}, memory);
  from.gather();
  REQUIRE(from.source(TensorId{0}).size() == 8);
  REQUIRE(from.destination(TensorId{0}).empty());
  std::memcpy(to.destination(TensorId{0}).data(), from.source(TensorId{0}).data(), 8);
  to.scatter();
  // 2.0078125 is halfway between two values of bf16; 1e30 is none of f16.
  CHECK((got[0] == 7 && got[1] == 0x3c00 && got[2] == 0xc200 && got[3] == 0x4000 &&
         got[4] == 0x7c00));
}
