// SPDX-License-Identifier: BSD-3-Clause
// Memory: what is shared, what is one rank's, when it is freed; shrinking; the data check's limits.
#include <catch2/catch.hpp>

#include <cstring>
#include <set>

#include "core/base/errors.h"
#include "core/layout/request.h"
#include "core/plan/join.h"
#include "core/proof/proof.h"
#include "sim/store/data_check.h"
#include "sim/store/store.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/oracle.h"
#include "tests/support/rough_data.h"
#include "tests/support/slow_proof.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;
using Catch::Matchers::Contains;
using reshard::sim::DataReport;

namespace {

std::shared_ptr<const Plan> planned(const Request& request, std::string_view planner = "p2p") {
  Topology topology = star(64);
  PlannerInput input;
  input.topology = &topology;
  auto plan = std::make_shared<const Plan>(find_planner(planner).make(request, input));
  prove(*plan);
  return plan;
}

constexpr std::int64_t kNoLimit = kMaxBytes;

DataReport checked(const Request& request, std::int64_t budget = kNoLimit,
                   std::int64_t limit = kNoLimit, std::string_view planner = "p2p") {
  return sim::move_and_check(
      planned(request, planner),
      [&](std::span<const Request> smaller) { return planned(smaller.front(), planner); }, budget,
      limit);
}

}  // namespace

TEST_CASE("source replicas share memory, addends do not") {
  Plan plan(request_on("2x3x2", "6", "S(0)RP(sum)", "RRR"), "none");
  CHECK(first_replicas(plan.request()) ==
        std::vector<std::int32_t>{0, 1, 0, 1, 0, 1, 6, 7, 6, 7, 6, 7});
  sim::StoreMemory memory(plan);
  std::vector<int> filled;
  sim::fill_sources(
      plan, [&](Rank rank, std::span<std::byte>) { filled.push_back(to_int(rank)); }, memory);
  CHECK(filled == std::vector<int>{0, 1, 6, 7});
  CHECK(memory.peak_bytes() == 4 * 3 * 4);
  CHECK(memory.read(kSourceBuffer, 4) == memory.read(kSourceBuffer, 0));
  CHECK(memory.read(kSourceBuffer, 1) != memory.read(kSourceBuffer, 0));
  CHECK_THROWS_AS(memory.write(kSourceBuffer, 0), CheckFailure);
  // What a step writes is the rank's own.
  CHECK(memory.write(kDestinationBuffer, 0) != memory.write(kDestinationBuffer, 1));
}

TEST_CASE("the first rank of a set of replicas is filled, whatever the order of the mesh") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("[[5,1],[2,9]]"));
  Plan plan(Request(parse_layout("4", "i8", mesh, "RS(0)"), parse_layout("4", "i8", mesh, "RR")),
            "none");
  sim::StoreMemory memory(plan);
  std::vector<int> filled;
  sim::fill_sources(
      plan, [&](Rank rank, std::span<std::byte>) { filled.push_back(to_int(rank)); }, memory);
  CHECK(filled == std::vector<int>{1, 2});  // slots 0 and 1; ranks 9 and 5 share
  CHECK(memory.read(kSourceBuffer, plan.slot_of(Rank{9})) ==
        memory.read(kSourceBuffer, plan.slot_of(Rank{1})));
  CHECK(memory.read(kSourceBuffer, plan.slot_of(Rank{5})) ==
        memory.read(kSourceBuffer, plan.slot_of(Rank{2})));
}

namespace {

// R -> R on one rank of 1024 bytes, through three temporaries one after the other.
Plan through_temporaries(bool folds) {
  Plan plan(request_on("1", "1024", "R", "R", "i8"), "by hand");
  BufferId a = plan.add_temporary(), b = plan.add_temporary(), c = plan.add_temporary();
  for (BufferId id : {a, b, c}) plan.buffer(id).set_shape(0, Shape{1024});
  BufferId from = kSourceBuffer;
  for (BufferId to : {a, b, c, kDestinationBuffer}) {
    std::vector<StepId> after;
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      after.push_back(StepId{static_cast<std::int32_t>(s)});
    if (folds) {
      ReduceStep step{};
      step.operands = {{from, DimVector{0}}};
      step.parts = {{0, to, DimVector{0}, DimVector{1024}, 0, 1}};
      plan.add_step(step, after);
    } else {
      CopyStep step{{{0, {0, 1}}}, MoveList(1)};
      step.moves.push_back({from, to, DimVector{0}, DimVector{0}, DimVector{1024}});
      plan.add_step(step, after);
    }
    from = to;
  }
  prove(plan);
  return plan;
}

void run_and_look(sim::Store& store, const Plan& plan) {
  run_once(
      store, plan,
      [](Rank, std::span<std::byte> bytes) { std::memset(bytes.data(), 3, bytes.size()); },
      [](Rank, std::span<const std::byte> bytes) { CHECK(bytes[1023] == std::byte{3}); });
}

}  // namespace

TEST_CASE("temporaries live from their first write to their last use") {
  Plan plan = through_temporaries(true);
  sim::Store store;
  run_and_look(store, plan);
  // Source and two of the others at any time.
  CHECK(store.peak_bytes() == 3 * 1024);
  CHECK(store.bytes_moved() == 4 * 1024);
  // The destination counts all the time.
  CHECK(sim::store_bytes(plan) == 4 * 1024);
}

TEST_CASE("what is only copied through temporaries is copied once") {
  Plan plan = through_temporaries(false);
  sim::Store store;
  run_and_look(store, plan);
  CHECK(store.peak_bytes() == 2 * 1024);
  CHECK(store.bytes_moved() == 1024);
  // The plan's own account does not change.
  CHECK(sim::store_bytes(plan) == 4 * 1024);
}

TEST_CASE("lent memory is used where it lies and counts as nothing") {
  Plan plan = through_temporaries(true);
  std::vector<std::byte> source(1024, std::byte{3}), destination(1024);
  sim::StoreMemory memory(plan);
  memory.lend_source(kSourceBuffer, 0, source);
  memory.lend_destination(kDestinationBuffer, 0, destination);
  CHECK_THROWS_AS(memory.write(kSourceBuffer, 0), CheckFailure);
  Forwarding forwarding(plan);
  CHECK(sim::run_steps(plan, forwarding, memory) == 4 * 1024);
  CHECK(destination == std::vector<std::byte>(1024, std::byte{3}));
  CHECK(memory.read(kSourceBuffer, 0) == source.data());
  // Two temporaries at a time.
  CHECK(memory.peak_bytes() == 2 * 1024);
  CHECK_THROWS_AS(memory.lend_source(kSourceBuffer, 0, std::span(source).first(8)), CheckFailure);
}

TEST_CASE("bytes moved are what steps write, of every kind of step") {
  PlannerInput input;
  Topology topology = star(kDrawnRanks);
  input.topology = &topology;
  sim::Store store({.poison = true, .forward = false});
  std::set<std::string_view> kinds;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Prng prng(seed);
    std::optional<Request> request = draw_request(prng);
    if (!request) continue;
    Plan plan = find_planner(request->same_mesh() ? "rule" : "p2p").make(*request, input);
    SlowMeanings meaning{SlowMeaning(*request)};
    SlowRun slow(meaning, plan);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      REQUIRE(slow.run_step(s));
      kinds.insert(kind_text(plan.steps[s]));
    }
    std::int64_t written = 0;
    for (std::size_t b = 1; b < plan.buffers.size(); ++b)
      for (Slot slot = 0; slot < static_cast<Slot>(plan.slot_count()); ++slot)
        if (plan.buffers[b].exists(slot))
          for (const SlowValue& value : slow.held(BufferId{static_cast<std::int32_t>(b)}, slot))
            written += value.writer >= 0 ? size_bytes(request->dtype()) : 0;
    run_once(
        store, plan, [](Rank, std::span<std::byte>) {}, [](Rank, std::span<const std::byte>) {});
    INFO("seed " << seed << ": " << request->text());
    CHECK(store.bytes_moved() == written);
  }
  CHECK(kinds.size() == 8);
}

TEST_CASE("the digest is that of the destination shards, rank after rank") {
  Request request = request_on("2x2", "5,3", "S(0)R", "RS(1)", "i16");
  DataReport report = checked(request);
  Pattern pattern(request);
  Hasher hasher;
  for (std::int32_t p = 0; p < 4; ++p)
    for (std::int64_t index : held_elements(request.destination(), p)) {
      std::uint64_t bits = pattern.source_bits(index, 0);
      hasher.add(std::as_bytes(std::span(&bits, 1)).first(2));
    }
  CHECK(report.checked);
  CHECK(report.full_size);
  CHECK(report.shape == Shape{5, 3});
  CHECK(report.elements == 5 * 3 * 2);
  CHECK(report.bytes_moved > 0);
  REQUIRE(report.digest);
  CHECK(*report.digest == hasher.digest());
  // All planners give the same bytes.
  for (const PlannerRow* planner : own_planners())
    CHECK(checked(request, kNoLimit, kNoLimit, planner->name).digest == report.digest);
}

TEST_CASE("of several tensors all are moved, in full or not at all, and each is checked") {
  Request first = request_on("2x2", "5,3", "S(0)R", "RS(1)", "i16"),
          second = request_on("3", "7", "P(sum)", "R");
  auto plan = std::make_shared<const Plan>(join({*planned(first), *planned(second)}));
  DataReport report = sim::move_and_check(plan, {}, 1, kNoLimit);
  CHECK((report.checked && report.full_size && !report.shape));
  CHECK(report.elements == 5 * 3 * 2 + 7 * 3);
  Hasher hasher;
  for_each_tensor(plan->tensors, [&](TensorId tensor, const Request& request) {
    Pattern pattern(request, tensor);
    for (std::int32_t p = 0; p < request.destination().mesh().size(); ++p)
      for (std::int64_t index : held_elements(request.destination(), p)) {
        std::uint64_t bits = pattern.expected_bits(index, request.addends_wanted(p));
        hasher.add(std::as_bytes(std::span(&bits, 1)).first(to_index(size_bytes(request.dtype()))));
      }
  });
  CHECK(report.digest == hasher.digest());
  CHECK_THROWS_WITH(sim::move_and_check(plan, {}, 1, 100),
                    Contains(requests_text(*plan)) && Contains("cannot be reduced"));

  // Halves of the second change places.
  Plan wrong({request_on("1", "4", "R", "R"), request_on("1", "4", "R", "R")}, "by hand");
  CopyStep step{{{0, {0, 3}}}, MoveList(1)};
  step.moves.push_back({BufferId{0}, BufferId{1}, {0}, {0}, {4}});
  step.moves.push_back({BufferId{2}, BufferId{3}, {0}, {2}, {2}});
  step.moves.push_back({BufferId{2}, BufferId{3}, {2}, {0}, {2}});
  wrong.add_step(std::move(step), {});
  CHECK_THROWS_WITH(sim::move_and_check(std::make_shared<const Plan>(wrong), {}, 1, kNoLimit),
                    Contains("data of tensor 1, f32[4] R on 1 -> R: rank 0") && Contains("[0]") &&
                        Contains("4 of its elements"));

  // The first in place of the second, which is of its size.
  CopyStep twice{{{0, {0, 2}}}, MoveList(1)};
  twice.moves.push_back({BufferId{0}, BufferId{1}, {0}, {0}, {4}});
  twice.moves.push_back({BufferId{0}, BufferId{3}, {0}, {0}, {4}});
  wrong.steps[0].body = std::move(twice);
  CHECK_THROWS_WITH(sim::move_and_check(std::make_shared<const Plan>(wrong), {}, 1, kNoLimit),
                    Contains("data of tensor 1") && Contains("4 of its elements"));
}

TEST_CASE("nothing to move has no digest") {
  DataReport report = checked(request_on("2", "0,4", "S(1)", "R"));
  CHECK(report.checked);
  CHECK(report.elements == 0);
  CHECK_FALSE(report.digest);
}

TEST_CASE("every dtype and operator passes the check at a size with several chunks") {
  for (const char* dtype : {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16",
                            "i8", "u8", "bool", "c64"}) {
    CHECK(checked(request_on("3x2", "37,41", "S(0)S(1)", "_S(1,4)R", dtype)).elements ==
          37 * 41 * 2);
    for (const char* op : {"sum", "avg", "min", "max", "product", "band", "bor", "bxor"}) {
      if (!can_reduce(parse_reduce_op(op), parse_dtype(dtype))) continue;
      std::string from = std::string("P(") + op + ")P(" + op + ")";
      for (const PlannerRow* planner : own_planners())
        CHECK(checked(request_on("3x2", "37,41", from.c_str(), "S(1)R", dtype), kNoLimit, kNoLimit,
                      planner->name)
                  .elements == 37 * 41 * 2);
    }
  }
}

TEST_CASE("digests are the same from every compiler, in debug and release") {
  auto digest = [](const char* shape, const char* from, const char* to, const char* dtype) {
    return checked(request_on("2x3", shape, from, to, dtype)).digest->hex();
  };
  CHECK(digest("37,41", "S(0)S(1)", "S(1)R", "f32") == "96d75cac5af05a916d79c124dbf6101d");
  CHECK(digest("37,41", "S(0)S(0)", "_S(0,2)R", "f8e4m3") == "a17f10e43fc9169e926078a0312bee4a");
  CHECK(digest("64,3", "P(avg)R", "S(0)P(sum)", "bf16") == "9d5d1d659b3aa0b2d686e533ce292019");
  CHECK(digest("64,3", "P(sum)P(avg)", "S(0)R", "f16") == "b2c9bf31c079c4ccafc2b390b755bc60");
  CHECK(digest("64,3", "P(product)R", "S(0)R", "c64") == "272eea0b5ce3d0a2d2ec313594555b25");
  CHECK(digest("64,3", "P(max)R", "S(0)R", "i16") == "8beec02aaa0df8941c9e0c6d903f76cf");
}

TEST_CASE("a wrong value is named with rank, index and bits") {
  Request request = request_on("2", "4,4", "S(0)", "S(1)");
  // A plan that swaps two destination rows on rank 1.
  Plan wrong(request, "by hand");
  ExchangeStep exchange{{{0, 1, {0, 1}}, {1, 0, {1, 1}}}, MoveList(2)};
  exchange.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 2}, DimVector{0, 0}, DimVector{2, 2}});
  exchange.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 0}, DimVector{2, 0}, DimVector{2, 2}});
  CopyStep own{{{0, {0, 1}}, {1, {1, 2}}}, MoveList(2)};
  own.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 0}, DimVector{0, 0}, DimVector{2, 2}});
  own.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 2}, DimVector{3, 0}, DimVector{1, 2}});
  own.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{1, 2}, DimVector{2, 0}, DimVector{1, 2}});
  wrong.add_step(own, {});
  wrong.add_step(exchange, {});
  CHECK(check_plan(wrong).refutation.has_value());
  auto run = [&] {
    sim::move_and_check(std::make_shared<const Plan>(wrong), nullptr, kNoLimit, kNoLimit);
  };
  CHECK_THROWS_AS(run(), CheckFailure);
  CHECK_THROWS_WITH(run(),
                    Contains("rank 1") && Contains("[2,2]") && Contains("4 of its elements"));
}

TEST_CASE("ranks that share a shard's shape but not its zeros are not taken for each other") {
  Request request = request_on("2", "4", "S(0)", "P(sum)");
  // Rank 1 gets what rank 0 must hold.
  Plan wrong(request, "by hand");
  CopyStep own{{{0, {0, 1}}}, MoveList(1)};
  own.moves.push_back({kSourceBuffer, kDestinationBuffer, {0}, {0}, {2}});
  ExchangeStep exchange{{{0, 1, {0, 1}}}, own.moves};
  wrong.add_step(own, {});
  wrong.add_step(exchange, {});
  wrong.add_step(
      FillStep{{{0, kDestinationBuffer, {{2}, {4}}}, {1, kDestinationBuffer, {{2}, {4}}}}}, {});
  CHECK_THROWS_WITH(
      sim::move_and_check(std::make_shared<const Plan>(wrong), nullptr, kNoLimit, kNoLimit),
      Contains("rank 1") && Contains("[0]") && Contains("4 of its elements"));
  for (const PlannerRow* planner : own_planners())
    CHECK(checked(request, kNoLimit, kNoLimit, planner->name).elements == 8);
}

TEST_CASE("shrinking keeps what is even even, and halves the longest pieces first") {
  auto shape_after = [](const char* mesh, const char* shape, const char* from, const char* to,
                        int halvings) {
    return sim::shrunk(request_on(mesh, shape, from, to), halvings).shape();
  };
  CHECK(shape_after("4", "1024,64", "S(0)", "S(1)", 1) == Shape{512, 64});
  CHECK(shape_after("4", "1024,64", "S(0)", "S(1)", 4) == Shape{64, 64});
  CHECK(shape_after("4", "1024,64", "S(0)", "S(1)", 6) == Shape{32, 32});
  // As far as even pieces go: 4 x 4. Then uneven ones, as long as no shard becomes empty; 3 would
  // leave rank 3 without any.
  CHECK(shape_after("4", "1024,64", "S(0)", "S(1)", 12) == Shape{4, 4});
  CHECK(shape_after("4", "4,64", "S(0)", "R", 6) == Shape{4, 1});
  // Uneven dims last: 30 over 4 ranks stays, 64 gives.
  CHECK(shape_after("4", "30,64", "S(0)", "S(1)", 4) == Shape{30, 4});
  CHECK(shape_after("4", "30,64", "S(0)", "S(1)", 5) == Shape{15, 4});
  // Rank 3 has none of 9 in chunks of 3: 5 in chunks of 2 keeps that.
  CHECK(shape_after("4", "9", "S(0)", "R", 1) == Shape{5});
  // In the end anything goes.
  CHECK(shape_after("4", "4,4", "S(0)", "S(1)", 62) == Shape{1, 1});
  CHECK(shape_after("4", "0,4", "S(0)", "S(1)", 3) == Shape{0, 4});
  CHECK(shape_after("4", "", "R", "R", 3) == Shape{});
}

TEST_CASE("what is above the budget is moved smaller, and says so") {
  Request request = request_on("4", "1024,1024", "S(0)", "S(1)");
  std::int64_t whole = sim::store_bytes(*planned(request));
  CHECK(whole == 2 * 1024 * 1024 * 4);
  CHECK(checked(request, whole).full_size);
  DataReport report = checked(request, whole - 1);
  CHECK_FALSE(report.full_size);
  CHECK(report.shape == Shape{512, 1024});
  CHECK(report.elements == 512 * 1024);
  CHECK(checked(request, whole / 1024).shape == Shape{32, 32});
  // The smallest there is where nothing fits.
  CHECK(checked(request, 1).shape == Shape{1, 1});
}

TEST_CASE("what does not fit the memory limit is refused with a budget that would do") {
  Request request = request_on("4", "1024,1024", "S(0)", "S(1)");
  auto run = [&](std::int64_t limit) { checked(request, kNoLimit, limit); };
  CHECK_THROWS_AS(run(1000), InputError);
  CHECK_THROWS_WITH(run(1 << 20), Contains("8.000 MiB") && Contains("1.000 MiB") &&
                                      Contains("use --data-budget 1048576"));
  CHECK_THROWS_WITH(run(1), Contains("even the smallest tensor"));
  // The budget that is named does.
  CHECK(checked(request, 1048576, 1 << 20).shape == Shape{256, 512});
}

TEST_CASE("the size of everything does not overflow") {
  // 2^20 elements on 2^20 ranks would be 2^60 elements in all; times 8 bytes and two sides is above
  // 2^62.
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({64}));
  Shape shape{std::int64_t{1} << 59};
  Request request(Layout(shape, DType::I8, mesh, {Placement::replicate()}),
                  Layout(shape, DType::I8, mesh, {Placement::replicate()}));
  CHECK(sim::store_bytes(Plan(request, "none")) == kMaxBytes);
}

TEST_CASE("memory that the system does not have is said to be none") {
  // 2^61 bytes are more than any address space.
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({1}));
  Layout layout(Shape{std::int64_t{1} << 61}, DType::I8, mesh, {Placement::replicate()});
  Plan plan(Request(layout, layout), "none");
  sim::StoreMemory memory(plan);
  CHECK_THROWS_AS(memory.write(kDestinationBuffer, 0), std::bad_alloc);
  CHECK(memory.peak_bytes() == 0);
}
