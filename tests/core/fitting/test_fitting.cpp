// SPDX-License-Identifier: BSD-3-Clause
// Plans cut to the memory of ranks. tests/sim/study/test_memory_limits.cpp has whole jobs.
#include <catch2/catch.hpp>

#include <map>
#include <vector>

#include "core/base/errors.h"
#include "core/fitting/fitting.h"
#include "core/fitting/waves.h"
#include "core/plan/join.h"
#include "core/plan/step_order.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/schedule/held_memory.h"
#include "core/schedule/packed_messages.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

std::shared_ptr<const Mesh> mesh(const char* text, const char* ranks = "") {
  return std::make_shared<const Mesh>(parse_mesh(text, ranks));
}

// Of shape rows x columns, by row blocks on ranks 0 and 1, to column blocks on ranks 2 and 3.
Request transposing(const std::string& shape) {
  return {parse_layout(shape, "f32", mesh("2", "0-1"), "S(0)"),
          parse_layout(shape, "f32", mesh("2", "2-3"), "S(1)")};
}

Plan p2p_of(const std::vector<Request>& job) { return plan_p2p(Demand(job), {}); }

const ExchangeStep& exchange_of(const Plan& plan, int step = 0) {
  return std::get<ExchangeStep>(plan.steps[StepId{step}].body);
}

}  // namespace

TEST_CASE("a message packs what is not contiguous, at each end") {
  // 128 rows of 256 bytes out of rows of 512 bytes: strided where it comes from; where it goes, one
  // range of 32 KiB.
  Plan plan = p2p_of({transposing("256,128")});
  const ExchangeStep& step = exchange_of(plan);
  REQUIRE(step.messages.size() == 4);
  for (const ExchangeStep::Message& message : step.messages) {
    PackedBytes packed = packed_bytes(plan, step, message);
    CHECK(packed.sender == 128 * 256);
    CHECK(packed.receiver == 0);
  }
  // A source rank packs for two, and holds 128 KiB of the tensor.
  CHECK(held_memory(plan)[0] == 128 * 512 + 2 * 128 * 256);
  CHECK(held_memory(plan)[2] == 256 * 256);
}

TEST_CASE("small boxes go together in multiples of 256 bytes, a large one by itself") {
  auto job = [](const char* second) {
    std::vector<Request> out;
    for (const char* shape : {"3", second})
      out.emplace_back(parse_layout(shape, "f32", mesh("1", "0"), "R"),
                       parse_layout(shape, "f32", mesh("1", "1"), "R"));
    return out;
  };
  Plan small = p2p_of(job("100"));
  PackedBytes packed = packed_bytes(small, exchange_of(small), exchange_of(small).messages[0]);
  CHECK(packed.sender == 512);  // 412 bytes
  CHECK(packed.receiver == 512);
  Plan large = p2p_of(job("262144"));
  packed = packed_bytes(large, exchange_of(large), exchange_of(large).messages[0]);
  CHECK(packed.sender == 0);
  CHECK(packed.receiver == 0);
  std::vector<std::size_t> firsts;
  std::vector<std::int64_t> sizes{5, 7, kOwnTransferBytes, 3, kOwnTransferBytes - 1, 1 << 21};
  for_each_transfer(
      sizes.size(), [&](std::size_t i) { return sizes[i]; },
      [&](std::size_t first, std::size_t) { firsts.push_back(first); });
  CHECK(firsts == std::vector<std::size_t>{0, 2, 3, 5});
}

TEST_CASE("large boxes are split where both ends have them contiguous") {
  // The two inner dims of a block are 2 MiB at both ends, the outer one is cut.
  std::vector<Request> job{{parse_layout("8,4,512,512", "f32", mesh("2", "0-1"), "S(0)"),
                            parse_layout("8,4,512,512", "f32", mesh("2", "2-3"), "S(1)")}};
  Plan plan = p2p_of(job);
  CHECK(exchange_of(plan).moves.size() == 4);
  CHECK(memory_needs(plan).extra_bytes == 4 * 2 * 2 * (1 << 20));  // 4 blocks of 2 MiB to each
  split_contiguous(plan);
  CHECK(exchange_of(plan).moves.size() == 4 * 4);
  CHECK(memory_needs(plan).extra_bytes == 0);
  prove(plan);
}

TEST_CASE("waves carry equal shares, in turn on every rank") {
  Plan plan = p2p_of({transposing("256,128"), transposing("512,64")});
  std::int64_t all = exchange_of(plan).moves.size() > 0 ? 4 * (128 * 256 + 256 * 128) : 0;
  Plan cut = in_waves(plan, IndexVector<StepId, std::int32_t>(plan.steps.size(), 4), {});
  prove(cut);
  REQUIRE(cut.steps.size() == 4);
  StepOrder order(cut);
  for (std::size_t slot = 0; slot < cut.slot_count(); ++slot)
    CHECK(order.in_turn(static_cast<Slot>(slot)));
  for (int s = 0; s < 4; ++s) {
    const ExchangeStep& step = exchange_of(cut, s);
    REQUIRE(step.messages.size() == 4);
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < step.moves.size(); ++i) bytes += 4 * step.moves.elements(i);
    CHECK(bytes == all / 4);
  }
  // The limit that three waves keep does not take four.
  MemoryLimits limits{.extra_bytes = 2 * (128 * 256 + 256 * 128) / 3 + 4096};
  Fitted fitted = fit(plan, limits);
  CHECK(fitted.changed);
  CHECK(plan.steps.size() == 3);
  CHECK(fitted.needs.extra_bytes <= *limits.extra_bytes);
  CHECK(fitted.needs.extra_bytes == memory_needs(plan).extra_bytes);
}

TEST_CASE("even waves go to exchanges in proportion to their bytes") {
  // The second exchange moves three times as much as the first.
  Plan plan = join({p2p_of({transposing("256,128")}), p2p_of({transposing("768,128")})});
  REQUIRE(plan.steps.size() == 2);
  Plan cut = in_even_waves(plan, 8, {});
  prove(cut);
  REQUIRE(cut.steps.size() == 8);
  for (int s = 0; s < 8; ++s) {
    const ExchangeStep& step = exchange_of(cut, s);
    CHECK(cut.buffer(step.moves.source(0)).tensor() == TensorId{s < 2 ? 0 : 1});
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < step.moves.size(); ++i) bytes += 4 * step.moves.elements(i);
    CHECK(bytes == 4 * 256 * 128 / 2);
  }
}

TEST_CASE("freed sources make room for destinations, tensor by tensor") {
  // Four tensors of 1 MiB move from two ranks to the same two, by rows and by columns: half stays.
  std::vector<Request> job;
  for (int i = 0; i < 4; ++i)
    job.emplace_back(parse_layout("512,512", "f32", mesh("2"), "S(0)"),
                     parse_layout("512,512", "f32", mesh("2"), "S(1)"));
  Plan kept = p2p_of(job);
  constexpr std::int64_t kShard = 512 * 1024;
  CHECK(memory_needs(kept).bytes == 2 * 4 * kShard + 2 * 4 * kShard / 2);
  Plan plan = kept;
  MemoryLimits limits{.limit_bytes = 6 * kShard, .free_sources = true};
  Fitted fitted = fit(plan, limits);
  CHECK(plan.frees_sources);
  CHECK(fitted.needs.bytes <= 6 * kShard);
  CHECK(fitted.needs.extra_bytes == 0);
  prove(plan);
  // Without that, there is not even room for both.
  plan = kept;
  limits.free_sources = false;
  MemoryNeeds needs = fit(plan, limits).needs;
  CHECK(needs.bytes >= 8 * kShard);
  CHECK_THROWS_AS(require_fit("p2p", needs, limits), InputError);
}
