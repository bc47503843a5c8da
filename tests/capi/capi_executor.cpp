// SPDX-License-Identifier: BSD-3-Clause
#include "tests/capi/capi_executor.h"

#include <reshard/reshard.h>

#include <optional>
#include <thread>

#include "core/base/errors.h"
#include "core/bytes/block.h"
#include "core/text/plan_text.h"
#include "tests/capi/mailboxes.h"

namespace reshard::test {
namespace {

void check(std::int32_t code, const char* call) {
  RESHARD_CHECK(code == RESHARD_OK, std::string(call) + ": " + reshard_last_error());
}

constexpr std::byte kPoison{0xa5};

// One rank: its program, its buffers, and what its last run said.
struct RankState {
  RankState(const reshard_plan* plan, std::int32_t rank_in) : rank(rank_in) {
    check(reshard_program_create(plan, rank, 0, &program), "program_create");
    reshard_program_facts facts = RESHARD_INIT(reshard_program_facts);
    check(reshard_program_get_facts(program, &facts), "get_facts");
    source_buffer = destination_buffer = RESHARD_INIT(reshard_buffer);
    check(reshard_program_get_buffer(program, 0, &source_buffer), "get_buffer");
    check(reshard_program_get_buffer(program, 1, &destination_buffer), "get_buffer");
    source.emplace(source_buffer.bytes);
    destination.emplace(destination_buffer.bytes);
    // Every other rank leaves the arena to the library.
    if (rank % 2 == 0) arena.emplace(facts.arena_bytes);
  }
  RankState(const RankState&) = delete;
  ~RankState() { reshard_program_free(program); }

  void run(Mailboxes& mailboxes) {
    for (Block* block : {&*destination, arena ? &*arena : nullptr})
      if (block != nullptr) std::fill(block->data(), block->data() + block->size(), kPoison);
    Place place{&mailboxes, rank};
    reshard_run run = RESHARD_INIT(reshard_run);
    run.exchange = exchange;
    run.context = &place;
    run.source = source_buffer.bytes > 0 ? source->data() : nullptr;
    run.source_bytes = source_buffer.bytes;
    run.destination = destination_buffer.bytes > 0 ? destination->data() : nullptr;
    run.destination_bytes = destination_buffer.bytes;
    run.arena = arena ? arena->data() : nullptr;
    run.arena_bytes = arena ? arena->size() : 0;
    code = reshard_execute(program, &run);
    if (code == RESHARD_OK) return;
    error = reshard_last_error();
    mailboxes.fail();
  }

  std::int32_t rank, code = 0;
  std::string error;
  reshard_program* program = nullptr;
  reshard_buffer source_buffer{}, destination_buffer{};
  std::optional<Block> source, destination, arena;

 private:
  struct Place {
    Mailboxes* mailboxes;
    std::int32_t rank;
  };
  static std::int32_t exchange(void* context, const reshard_transfer* sends,
                               std::int32_t send_count, const reshard_transfer* receives,
                               std::int32_t receive_count) {
    auto* place = static_cast<Place*>(context);
    return place->mailboxes->exchange(place->rank, sends, send_count, receives, receive_count);
  }
};

class PreparedCapi : public PreparedPlan {
 public:
  explicit PreparedCapi(const Plan& plan) {
    std::string text = to_text(plan);
    reshard_plan* handle = nullptr;
    check(reshard_plan_parse(text.data(), static_cast<std::int64_t>(text.size()), &handle),
          "plan_parse");
    for (Rank rank : plan.ranks)
      ranks_.push_back(std::make_unique<RankState>(handle, to_int(rank)));
    reshard_plan_free(handle);  // programs keep it
  }

  void fill(const FillSource& fill, TensorId) override {
    for (auto& rank : ranks_)
      if (rank->source_buffer.exists)
        fill(Rank{rank->rank},
             {rank->source->data(), static_cast<std::size_t>(rank->source_buffer.bytes)});
  }

  Timeline run() override {
    Mailboxes mailboxes;
    std::vector<std::thread> threads;
    for (auto& rank : ranks_) threads.emplace_back([&] { rank->run(mailboxes); });
    for (std::thread& thread : threads) thread.join();
    for (auto& rank : ranks_) RESHARD_CHECK(rank->code == RESHARD_OK, rank->error);
    RESHARD_CHECK(mailboxes.left() == 0, "messages that nobody received");
    return {};
  }

  void take(const TakeDestination& take, TensorId) override {
    for (auto& rank : ranks_)
      if (rank->destination_buffer.exists)
        take(Rank{rank->rank},
             {rank->destination->data(), static_cast<std::size_t>(rank->destination_buffer.bytes)});
  }

 private:
  std::vector<std::unique_ptr<RankState>> ranks_;
};

}  // namespace

std::unique_ptr<PreparedPlan> CapiExecutor::prepare(const Plan& plan) {
  return std::make_unique<PreparedCapi>(plan);
}

}  // namespace reshard::test
