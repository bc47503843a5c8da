// SPDX-License-Identifier: BSD-3-Clause
#include "tests/capi/capi_executor.h"

#include <reshard/reshard_rings.h>

#include <cstring>
#include <memory>
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
  RankState(const reshard_plan* plan, std::int32_t rank_in, std::int32_t tensors) : rank(rank_in) {
    check(reshard_program_create(plan, rank, 0, &program), "program_create");
    reshard_program_facts facts = RESHARD_INIT(reshard_program_facts);
    check(reshard_program_get_facts(program, &facts), "get_facts");
    for (std::int32_t t = 0; t < tensors; ++t)
      for (auto [shards, id] : {std::pair{&sources, 2 * t}, {&destinations, 2 * t + 1}}) {
        reshard_buffer buffer = RESHARD_INIT(reshard_buffer);
        check(reshard_program_get_buffer(program, id, &buffer), "get_buffer");
        RESHARD_CHECK(buffer.exists == 0 || buffer.tensor == t, "a buffer of another tensor");
        shards->push_back({buffer.exists != 0, std::make_unique<Block>(buffer.bytes)});
      }
    // Every other rank leaves the arena to the library.
    if (rank % 2 == 0) arena.emplace(facts.arena_bytes);
  }
  RankState(const RankState&) = delete;
  ~RankState() { reshard_program_free(program); }

  // Destinations poisoned, all lent.
  std::vector<reshard_shards> lend() const {
    std::vector<reshard_shards> shards;
    for (std::size_t t = 0; t < sources.size(); ++t) {
      poison(*destinations[t].block);
      reshard_shards& lent = shards.emplace_back();
      lent = RESHARD_INIT(reshard_shards);
      lent.source = data_of(sources[t]);
      lent.source_bytes = sources[t].block->size();
      lent.destination = data_of(destinations[t]);
      lent.destination_bytes = destinations[t].block->size();
    }
    return shards;
  }

  void run(Mailboxes& mailboxes) {
    ExchangeContext place{&mailboxes, rank};
    run_by([&](reshard_run& run) {
      run.exchange = exchange;
      run.context = &place;
      return reshard_execute(program, &run);
    });
    if (code != RESHARD_OK) mailboxes.fail();
  }

  void run(reshard_rings* rings, std::int64_t number) {
    run_by(
        [&](reshard_run& run) { return reshard_execute_on_rings(program, &run, rings, number); });
  }

  template <class Execute>
  void run_by(const Execute& execute) {
    if (arena) poison(*arena);
    reshard_run run = RESHARD_INIT(reshard_run);
    std::vector<reshard_shards> shards = lend();
    if (shards.size() > 1) {
      run.tensors = shards.data();
    } else {
      run.source = shards[0].source;
      run.source_bytes = shards[0].source_bytes;
      run.destination = shards[0].destination;
      run.destination_bytes = shards[0].destination_bytes;
    }
    run.arena = arena ? arena->data() : nullptr;
    run.arena_bytes = arena ? arena->size() : 0;
    code = execute(run);
    if (code != RESHARD_OK) error = reshard_last_error();
  }

  std::int32_t rank, code = 0;
  std::string error;
  reshard_program* program = nullptr;
  struct Shard {
    bool exists;
    std::unique_ptr<Block> block;
  };
  std::vector<Shard> sources, destinations;  // by tensor
  std::optional<Block> arena;

 private:
  static void poison(Block& block) { std::fill_n(block.data(), block.size(), kPoison); }
  static std::byte* data_of(const Shard& shard) {
    return shard.block->size() > 0 ? shard.block->data() : nullptr;
  }
  struct ExchangeContext {
    Mailboxes* mailboxes;
    std::int32_t rank;
  };
  static std::int32_t exchange(void* context, const reshard_transfer* sends,
                               std::int32_t send_count, const reshard_transfer* receives,
                               std::int32_t receive_count) {
    auto* place = static_cast<ExchangeContext*>(context);
    return place->mailboxes->exchange(place->rank, sends, send_count, receives, receive_count);
  }
};

using PlanHandle = std::unique_ptr<reshard_plan, void (*)(reshard_plan*)>;

PlanHandle handle_of(const Plan& plan) {
  std::string text = to_text(plan);
  reshard_plan* handle = nullptr;
  check(reshard_plan_parse(text.data(), static_cast<std::int64_t>(text.size()), &handle),
        "plan_parse");
  return {handle, reshard_plan_free};
}

// Where the shards of all ranks lie, for either way to run.
class PreparedCapi : public PreparedPlan {
 public:
  PreparedCapi(const reshard_plan* handle, const Plan& plan) {
    for (Rank rank : plan.ranks)
      ranks_.push_back(std::make_unique<RankState>(handle, to_int(rank),
                                                   static_cast<std::int32_t>(plan.tensors.size())));
  }

  void fill(const FillSource& fill, TensorId tensor) override {
    for (auto& rank : ranks_)
      if (const auto& [exists, block] = rank->sources[to_index(tensor)]; exists)
        fill(Rank{rank->rank}, {block->data(), static_cast<std::size_t>(block->size())});
  }

  void take(const TakeDestination& take, TensorId tensor) override {
    for (auto& rank : ranks_)
      if (const auto& [exists, block] = rank->destinations[to_index(tensor)]; exists)
        take(Rank{rank->rank}, {block->data(), static_cast<std::size_t>(block->size())});
  }

 protected:
  std::vector<std::unique_ptr<RankState>> ranks_;
};

class PreparedThreads : public PreparedCapi {
 public:
  // Programs keep the handle's plan.
  explicit PreparedThreads(const Plan& plan) : PreparedCapi(handle_of(plan).get(), plan) {}

  Timeline run() override {
    Mailboxes mailboxes;
    std::vector<std::thread> threads;
    for (auto& rank : ranks_) threads.emplace_back([&] { rank->run(mailboxes); });
    for (std::thread& thread : threads) thread.join();
    for (auto& rank : ranks_) RESHARD_CHECK(rank->code == RESHARD_OK, rank->error);
    RESHARD_CHECK(mailboxes.left() == 0, "messages that nobody received");
    return {};
  }
};

// Memory for a plan's ranks, and each one's end of it. Gives up on who fails.
class PreparedRings : public PreparedCapi {
 public:
  explicit PreparedRings(const Plan& plan) : PreparedCapi(handle_of(plan).get(), plan) {
    std::vector<std::int32_t> ranks;
    for (auto& rank : ranks_) ranks.push_back(rank->rank);
    auto count = static_cast<std::int32_t>(ranks.size());
    std::int64_t bytes = 0;
    check(reshard_rings_get_bytes(count, &bytes), "rings_get_bytes");
    memory_ = std::make_unique<Block>(bytes + kPage);
    std::memset(memory_->data(), 0, to_index(bytes + kPage));
    void* begin = memory_->data();
    auto room = to_index(bytes + kPage);
    std::align(to_index(kPage), to_index(bytes), begin, room);
    for (std::int32_t place = 0; place < count; ++place) {
      reshard_rings_options options = RESHARD_INIT(reshard_rings_options);
      options.place = place;
      options.ranks = ranks.data();
      options.rank_count = count;
      options.memory = begin;
      options.memory_bytes = bytes;
      options.waiting = [](const reshard_wait* wait) {
        return static_cast<std::int32_t>(wait->waited_ms > 60'000);
      };
      reshard_rings* rings = nullptr;
      check(reshard_rings_create(&options, &rings), "rings_create");
      ends_.emplace_back(rings, reshard_rings_free);
    }
  }

  Timeline run() override {
    std::vector<std::thread> threads;
    for (std::size_t place = 0; place < ranks_.size(); ++place)
      threads.emplace_back([this, place] { ranks_[place]->run(ends_[place].get(), runs_); });
    for (std::thread& thread : threads) thread.join();
    ++runs_;
    for (auto& rank : ranks_) RESHARD_CHECK(rank->code == RESHARD_OK, rank->error);
    return {};
  }

 private:
  std::int64_t runs_ = 0;
  static constexpr std::int64_t kPage = 4096;
  std::unique_ptr<Block> memory_;
  std::vector<std::unique_ptr<reshard_rings, void (*)(reshard_rings*)>> ends_;
};

class PreparedAllRanks : public PreparedCapi {
 public:
  explicit PreparedAllRanks(const Plan& plan) : PreparedAllRanks(handle_of(plan), plan) {}

  Timeline run() override {
    std::vector<reshard_shards> all;
    for (auto& rank : ranks_)
      for (const reshard_shards& shards : rank->lend()) all.push_back(shards);
    check(reshard_execute_all(handle_.get(), all.data(), static_cast<std::int64_t>(all.size())),
          "execute_all");
    return {};
  }

 private:
  PreparedAllRanks(PlanHandle handle, const Plan& plan)
      : PreparedCapi(handle.get(), plan), handle_(std::move(handle)) {}

  PlanHandle handle_;
};

}  // namespace

std::unique_ptr<PreparedPlan> CapiExecutor::prepare(const Plan& plan) {
  return std::make_unique<PreparedThreads>(plan);
}

std::unique_ptr<PreparedPlan> RingsExecutor::prepare(const Plan& plan) {
  return std::make_unique<PreparedRings>(plan);
}

std::unique_ptr<PreparedPlan> AllRanksExecutor::prepare(const Plan& plan) {
  return std::make_unique<PreparedAllRanks>(plan);
}

}  // namespace reshard::test
