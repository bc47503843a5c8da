// SPDX-License-Identifier: BSD-3-Clause
// Buffers with values in them: right shards pass, one wrong element is named.
#include <catch2/catch.hpp>

#include <cstring>
#include <numeric>

#include "core/planners/planner.h"
#include "sim/machines/presets.h"
#include "sim/store/data_check.h"
#include "tests/support/drawn_models.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::sim;
using namespace reshard::test;

TEST_CASE("The data of drawn models is moved between their buffers, some of which convert") {
  Prng prng(23);
  StudyOptions options;
  options.transport.kind = TransportKind::Ideal;
  Studies studies(std::make_shared<const Topology>(find_topology("dgx-h100:2")),
                  find_planner("p2p"), options);
  int converts = 0;
  for (int i = 0; i < 1'000 / kOneOf; ++i) {
    DrawnModel model = draw_model(prng);
    StoredRequests stored(*model.source, *model.destination);
    for (const Stored* side : {model.source.get(), model.destination.get()})
      for (const StoredBuffer& buffer : side->buffers()) converts += buffer.converts ? 1 : 0;
    std::shared_ptr<const Plan> plan = studies.of(stored.requests())->shared_plan();
    DataReport report =
        move_and_check(plan, {}, kDefaultDataBudgetBytes, std::int64_t{1} << 30, &stored);
    CHECK(report.checked);
  }
  CHECK(converts > 100 / kOneOf);
}

TEST_CASE("A wrong element of a shard is named by its place in the tensor") {
  ModelTensors tensors;
  ModelTensorId w = tensors.add("w", {4, 3}, DType::BF16), v = tensors.add("v", {6}, DType::F32);
  Stored source(tensors), destination(tensors);
  source.add({Rank{0}, "a", {18}, DType::BF16, {{w, box_of({4, 3}), 4, {3, 1}}}});
  source.add({Rank{0}, "b", {6}, DType::F32, {{v, box_of({6}), 0, {1}}}});
  // Transposed, rows 1 to 4, with padding around them; and converted.
  destination.add({Rank{1}, "a", {3, 4}, DType::BF16, {{w, {{1, 0}, {4, 3}}, 1, {1, 4}}}});
  destination.add({Rank{1}, "b", {6}, DType::F64, {{v, box_of({6}), 0, {1}}}, true});
  StoredRequests requests(source, destination);
  StoredImages images(requests);
  std::vector<std::byte> shard(24), rows(18), numbers(24);
  images.gather(TensorId{0}, Rank{0}, shard);
  images.gather(TensorId{1}, Rank{0}, numbers);
  std::memcpy(rows.data(), shard.data() + 6, 18);
  CHECK_FALSE(images.scatter(TensorId{0}, Rank{1}, rows));
  CHECK_FALSE(images.scatter(TensorId{1}, Rank{1}, numbers));
  images.check_padding();

  // Row 2 of the tensor, column 1.
  rows[2 * (1 * 3 + 1)] ^= std::byte{1};
  auto wrong = images.scatter(TensorId{0}, Rank{1}, rows);
  REQUIRE(wrong);
  CHECK((wrong->count == 1 && wrong->index == 7));
  CHECK((wrong->expected ^ wrong->found) == 1);

  float other = 17;
  std::memcpy(numbers.data() + 4 * 5, &other, 4);
  wrong = images.scatter(TensorId{1}, Rank{1}, numbers);
  REQUIRE(wrong);
  CHECK((wrong->count == 1 && wrong->index == 5 && wrong->found == 0x41880000));
}

TEST_CASE("Buffers that do not fit are refused before anything is moved") {
  ModelTensors tensors;
  ModelTensorId w = tensors.add("w", {64}, DType::F32);
  Stored source(tensors), destination(tensors);
  source.add({Rank{0}, "w", {64}, DType::F32, {{w, box_of({64}), 0, {1}}}});
  destination.add({Rank{1}, "w", {100}, DType::F32, {{w, box_of({64}), 0, {1}}}});
  StoredRequests requests(source, destination);
  StudyOptions options;
  Studies studies(std::make_shared<const Topology>(find_topology("dgx-h100:1")),
                  find_planner("p2p"), options);
  std::shared_ptr<const Plan> plan = studies.of(requests.requests())->shared_plan();
  // Shards twice, 256 bytes on either side, and the buffers.
  const std::int64_t needed = 2 * 512 + 256 + 400;
  MakePlan never = [](std::span<const Request>) -> std::shared_ptr<const Plan> { return nullptr; };
  CHECK(move_and_check(plan, never, needed, needed, &requests).checked);
  CHECK_THROWS_WITH(move_and_check(plan, never, needed, needed - 1, &requests),
                    Catch::Contains("moving it needs 1.641 KiB") &&
                        Catch::Contains("--data proof moves nothing"));
}

TEST_CASE("Explicit boxes whose destinations do not fit are refused before they are planned") {
  const Request boxes =
      parse_request({"2", "", "", "", "8", "f32", "S(0)", "boxes(0: [0:8]; 1: [2:8])"});
  const std::vector<Request> three = {boxes, boxes, boxes};
  CHECK_NOTHROW(require_movable(three, 168));
  CHECK_THROWS_WITH(require_movable(three, 167),
                    "data of 3 tensors: moving it needs at least 168 B, above the memory limit of "
                    "167 B; explicit boxes cannot be reduced; --data proof moves nothing");
  const Request product = parse_request({"2", "", "", "", "8", "f32", "S(0)", "R"});
  CHECK_NOTHROW(require_movable(std::span(&product, 1), 1));
}
