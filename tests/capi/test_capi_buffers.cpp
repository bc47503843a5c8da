// SPDX-License-Identifier: BSD-3-Clause
// Plans of layouts from C: the buffers that ranks have, and runs on them.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/capi/job_calls.h"

using Catch::Matchers::Contains;

namespace {

// Rank 0 has q, k and v fused by group; ranks 1 and 2 have half of each, one after another.
constexpr const char* kLayouts = "traces/checks/qkv.copies";
constexpr const char *kFused = "linear_qkv.weight", *kSplit = "qkv_proj.weight";

using PlanHandle = std::unique_ptr<reshard_plan, void (*)(reshard_plan*)>;
using BuffersHandle = std::unique_ptr<reshard_rank_buffers, void (*)(reshard_rank_buffers*)>;
using Elements = std::vector<std::uint16_t>;

PlanHandle plan_of(const char* file) {
  reshard_plan* plan = nullptr;
  REQUIRE(reshard_plan_create_job_from_file(file, nullptr, nullptr, &plan) == RESHARD_OK);
  return {plan, reshard_plan_free};
}

reshard_lent_buffer lent(const char* name, Elements& elements) {
  reshard_lent_buffer out = RESHARD_INIT(reshard_lent_buffer);
  out.name = name;
  out.data = elements.data();
  out.bytes = static_cast<std::int64_t>(2 * elements.size());
  return out;
}

using Lent = std::vector<reshard_lent_buffer>;
std::int32_t create(const PlanHandle& plan, std::int32_t rank, const Lent& from, const Lent& to,
                    reshard_rank_buffers** out) {
  return reshard_rank_buffers_create(plan.get(), rank, from.data(),
                                     static_cast<std::int32_t>(from.size()), to.data(),
                                     static_cast<std::int32_t>(to.size()), out);
}

void check_refused(std::int32_t code, const std::string& what) {
  CHECK(code == RESHARD_INPUT_ERROR);
  CHECK_THAT(reshard_last_error(), Contains(what));
}

}  // namespace

TEST_CASE("a plan of layouts lists the buffers of both sides") {
  PlanHandle plan = plan_of(kLayouts);
  std::int32_t count = 0;
  REQUIRE(reshard_plan_get_stored_count(plan.get(), RESHARD_FROM, &count) == RESHARD_OK);
  CHECK(count == 1);
  REQUIRE(reshard_plan_get_stored_count(plan.get(), RESHARD_TO, &count) == RESHARD_OK);
  CHECK(count == 2);
  reshard_stored_buffer buffer = RESHARD_INIT(reshard_stored_buffer);
  REQUIRE(reshard_plan_get_stored_buffer(plan.get(), RESHARD_TO, 1, &buffer) == RESHARD_OK);
  CHECK((buffer.rank == 2 && buffer.name == std::string(kSplit)));
  CHECK((buffer.dtype == std::string("bf16") && buffer.dims == 2 && buffer.bytes == 48));
  CHECK((buffer.shape[0] == 8 && buffer.shape[1] == 3));
  check_refused(reshard_plan_get_stored_buffer(plan.get(), RESHARD_TO, 2, &buffer), "buffer");
  check_refused(reshard_plan_get_stored_count(plan.get(), 2, &count), "side: expected 0 (from)");

  reshard::test::JobFile requests(
      R"x({"mesh": "2", "shape": [4], "dtype": "f32", "from": "S(0)", "to": "R"})x");
  PlanHandle other = plan_of(requests.path.c_str());
  REQUIRE(reshard_plan_get_stored_count(other.get(), RESHARD_TO, &count) == RESHARD_OK);
  CHECK(count == 0);
  check_refused(reshard_plan_get_stored_buffer(other.get(), RESHARD_TO, 0, &buffer),
                "plan: expected one of layouts");
  reshard_rank_buffers* buffers = nullptr;
  check_refused(create(other, 0, {}, {}, &buffers), "plan: expected one of layouts");
}

TEST_CASE("layouts are also planned from text") {
  const std::string text = R"x({"reshard_check": 1}
{"tensor": "w", "shape": [4], "dtype": "f32"}
{"side": "from", "tensor": "w", "mesh": "2", "placements": "S(0)"}
{"side": "to", "tensor": "w", "mesh": "1"}
)x";
  auto bytes = static_cast<std::int64_t>(text.size());
  reshard_plan* plan = nullptr;
  REQUIRE(reshard_plan_create_job_from_text(text.data(), bytes, nullptr, nullptr, &plan) ==
          RESHARD_OK);
  PlanHandle owner(plan, reshard_plan_free);
  std::int32_t count = 0;
  REQUIRE(reshard_plan_get_stored_count(plan, RESHARD_FROM, &count) == RESHARD_OK);
  CHECK(count == 2);
  check_refused(reshard_plan_create_job_from_text(text.data(), 30, nullptr, nullptr, &plan),
                "text:2");
  check_refused(reshard_plan_create_job_from_text(text.data(), -1, nullptr, nullptr, &plan),
                "text_bytes: expected 0 or more");
  check_refused(reshard_plan_create_job_from_text(nullptr, 0, nullptr, nullptr, &plan), "text");
}

TEST_CASE("a plan runs on the buffers of its ranks") {
  PlanHandle plan = plan_of(kLayouts);
  Elements fused(48);
  for (std::size_t i = 0; i < fused.size(); ++i) fused[i] = static_cast<std::uint16_t>(100 + i);
  const Elements before = fused;
  std::map<std::int32_t, Elements> split{{1, Elements(24)}, {2, Elements(24)}};
  std::vector<BuffersHandle> ranks;
  std::vector<reshard_shards> shards;
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    Lent from, to;
    if (rank == 0) from = {lent(kFused, fused)};
    if (rank > 0) to = {lent(kSplit, split[rank])};
    reshard_rank_buffers* made = nullptr;
    REQUIRE(create(plan, rank, from, to, &made) == RESHARD_OK);
    const reshard_rank_buffers* mine = ranks.emplace_back(made, reshard_rank_buffers_free).get();
    REQUIRE(reshard_rank_buffers_gather(mine) == RESHARD_OK);
    std::vector<reshard_shards> of_rank(3, RESHARD_INIT(reshard_shards));
    check_refused(reshard_rank_buffers_get_shards(mine, of_rank.data(), 2), "count: expected 3");
    REQUIRE(reshard_rank_buffers_get_shards(mine, of_rank.data(), 3) == RESHARD_OK);
    shards.insert(shards.end(), of_rank.begin(), of_rank.end());
    std::int64_t staged = -1;
    REQUIRE(reshard_rank_buffers_get_staged_bytes(mine, &staged) == RESHARD_OK);
    // The groups of the source are apart; in the destination every tensor is one stretch.
    CHECK(staged == (rank == 0 ? 96 : 0));
  }
  REQUIRE(reshard_execute_all(plan.get(), shards.data(), 9) == RESHARD_OK);
  for (const BuffersHandle& mine : ranks)
    REQUIRE(reshard_rank_buffers_scatter(mine.get()) == RESHARD_OK);
  // Row 8 * group + 0 .. 3 are q, 4 and 5 k, 6 and 7 v.
  for (std::int32_t rank = 1; rank < 3; ++rank)
    for (std::size_t row = 0; row < 8; ++row)
      for (std::size_t column = 0; column < 3; ++column)
        CHECK(split[rank][3 * row + column] ==
              fused[3 * (8 * static_cast<std::size_t>(rank - 1) + row) + column]);
  CHECK(fused == before);
}

TEST_CASE("memory that is not the rank's buffers is refused") {
  PlanHandle plan = plan_of(kLayouts);
  Elements right(24), shorter(23);
  reshard_rank_buffers* out = nullptr;
  auto refused = [&](std::int32_t rank, const Lent& from, const Lent& to, const char* what) {
    check_refused(create(plan, rank, from, to, &out), what);
    CHECK(out == nullptr);
  };
  refused(1, {}, {}, "to: expected the buffer 'qkv_proj.weight' of rank 1, found none");
  refused(1, {}, {lent(kSplit, shorter)}, "expected 48 bytes, found 46");
  refused(1, {}, {lent(kSplit, right), lent(kSplit, right)}, "found it twice");
  refused(1, {}, {lent(kFused, right)}, "expected one that rank 1 has");
  refused(1, {lent(kSplit, right)}, {lent(kSplit, right)}, "from: buffer 'qkv_proj.weight'");
  refused(7, {}, {lent(kSplit, right)}, "rank");
  reshard_lent_buffer nothing = lent(kSplit, right), odd = nothing, unnamed = nothing;
  nothing.data = nullptr;
  refused(1, {}, {nothing}, "to");
  odd.data = reinterpret_cast<char*>(right.data()) + 1;
  refused(1, {}, {odd}, "align");
  unnamed.name = nullptr;
  refused(1, {}, {unnamed}, "to.name: expected a pointer");
  CHECK(reshard_rank_buffers_create(plan.get(), 1, nullptr, 0, nullptr, 1, &out) ==
        RESHARD_INPUT_ERROR);
  CHECK(reshard_rank_buffers_create(plan.get(), 1, nullptr, -1, nullptr, 0, &out) ==
        RESHARD_INPUT_ERROR);
  CHECK(reshard_rank_buffers_create(nullptr, 1, nullptr, 0, nullptr, 0, &out) ==
        RESHARD_INPUT_ERROR);
  check_refused(reshard_rank_buffers_gather(nullptr), "buffers");
  reshard_rank_buffers_free(nullptr);
}
