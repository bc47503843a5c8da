// SPDX-License-Identifier: BSD-3-Clause
#include "tools/cli/validate/executor_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/report/measurements.h"
#include "sim/store/data_check.h"
#include "sim/store/store.h"

namespace reshard::tools {

namespace {

// The lists of all processes, at the root.
template <class Item>
std::vector<std::vector<Item>> gathered(Processes& processes, const std::vector<Item>& mine) {
  static_assert(std::is_trivially_copyable_v<Item>);
  std::vector<std::vector<Item>> out;
  for (const std::vector<std::byte>& bytes : processes.gather(std::as_bytes(std::span(mine)))) {
    RESHARD_CHECK(bytes.size() % sizeof(Item) == 0, "gathered bytes are not a list");
    std::vector<Item>& items = out.emplace_back(bytes.size() / sizeof(Item));
    if (!bytes.empty()) std::memcpy(items.data(), bytes.data(), bytes.size());
  }
  return out;
}

// A run without its spans.
struct RunHead {
  std::int64_t end_ps;
  std::size_t spans;
};

// Every part of the plan must have exactly one span in every run, and there must be no others.
void require_all_parts(const Plan& plan, const std::vector<Timeline>& runs) {
  std::vector<sim::MeasuredPart> parts = sim::parts_of(plan);
  for (const Timeline& run : runs) {
    bool same = run.spans.size() == parts.size() &&
                std::equal(parts.begin(), parts.end(), run.spans.begin(),
                           [](const sim::MeasuredPart& part, const Span& span) {
                             return part.step == span.step && part.rank == span.rank &&
                                    0 <= span.start_ps && span.start_ps <= span.end_ps;
                           });
    RESHARD_CHECK(same, "the spans of a run are not those of the plan's parts");
  }
}

// The owner of a shard; sorted by tensor, then ascending by rank.
using ShardOwner = std::pair<TensorId, Rank>;
ShardOwner owner_of(const sim::ShardFacts& shard) { return {shard.tensor, shard.rank}; }

std::vector<ShardOwner> destination_owners(const Plan& plan) {
  std::vector<ShardOwner> out;
  for_each_tensor(plan.tensors, [&](TensorId tensor, const Request& request) {
    for (Rank rank : request.destination().mesh().ranks()) out.emplace_back(tensor, rank);
  });
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<Timeline> timed_runs(PreparedPlan& prepared, const RunCounts& counts,
                                 const OnRun& on_run) {
  std::vector<Timeline> out;
  out.reserve(to_index(counts.iterations));
  for (std::int64_t done = 0; done < counts.warm_up + counts.iterations; ++done) {
    if (on_run) on_run(done);
    Timeline timeline = prepared.run();
    if (done >= counts.warm_up) out.push_back(std::move(timeline));
  }
  return out;
}

CheckedShards checked_shards(PreparedPlan& prepared, const Plan& plan,
                             sim::PlanPatterns& patterns) {
  CheckedShards out;
  Hasher all;
  std::int64_t elements = 0;
  auto check = [&](TensorId tensor, Rank rank, std::span<const std::byte> bytes) {
    sim::ShardFacts facts{};
    facts.tensor = tensor;
    facts.rank = rank;
    facts.elements =
        static_cast<std::int64_t>(bytes.size()) / size_bytes(plan.request(tensor).dtype());
    facts.digest = digest_of(bytes);
    facts.wrong = patterns.check(tensor, rank, bytes);
    all.add(bytes);
    elements += facts.elements;
    out.shards.push_back(facts);
  };
  sim::take_all(prepared, plan, check);
  patterns.check_padding();
  if (elements > 0) out.digest = all.digest();
  return out;
}

std::vector<Timeline> gathered_runs(Processes& processes, const Plan& plan,
                                    const std::vector<Timeline>& mine) {
  std::vector<RunHead> heads;
  std::vector<Span> spans;
  for (const Timeline& run : mine) {
    heads.push_back({run.end_ps, run.spans.size()});
    spans.insert(spans.end(), run.spans.begin(), run.spans.end());
  }
  std::vector<std::vector<RunHead>> all_heads = gathered(processes, heads);
  std::vector<std::vector<Span>> all_spans = gathered(processes, spans);
  if (!processes.is_root()) return {};
  std::vector<Timeline> out(mine.size());
  for (std::size_t p = 0; p < all_heads.size(); ++p) {
    RESHARD_CHECK(all_heads[p].size() == out.size(), "a process made different runs from the root");
    std::span<const Span> rest(all_spans[p]);
    for (std::size_t run = 0; run < out.size(); ++run) {
      const RunHead& head = all_heads[p][run];
      RESHARD_CHECK(head.spans <= rest.size(), "a gathered list ends too early");
      out[run].end_ps = std::max(out[run].end_ps, head.end_ps);
      out[run].spans.insert(out[run].spans.end(), rest.begin(),
                            rest.begin() + static_cast<std::ptrdiff_t>(head.spans));
      rest = rest.subspan(head.spans);
    }
  }
  for (Timeline& run : out)
    std::sort(run.spans.begin(), run.spans.end(), [](const Span& a, const Span& b) {
      return std::pair(a.step, a.rank) < std::pair(b.step, b.rank);
    });
  require_all_parts(plan, out);
  return out;
}

std::vector<sim::ShardFacts> gathered_shards(Processes& processes, const Plan& plan,
                                             const std::vector<sim::ShardFacts>& mine) {
  std::vector<sim::ShardFacts> out;
  for (const std::vector<sim::ShardFacts>& shards : gathered(processes, mine))
    out.insert(out.end(), shards.begin(), shards.end());
  if (!processes.is_root()) return {};
  std::sort(out.begin(), out.end(), [](const sim::ShardFacts& a, const sim::ShardFacts& b) {
    return owner_of(a) < owner_of(b);
  });
  std::vector<ShardOwner> owners;
  std::transform(out.begin(), out.end(), std::back_inserter(owners), owner_of);
  RESHARD_CHECK(
      owners == destination_owners(plan),
      fmt::format("the processes hold {} shards, which are not those of the plan", owners.size()));
  return out;
}

void compare_with_store(const Plan& plan, const StoredRequests* stored,
                        std::int64_t data_budget_bytes, std::int64_t memory_bytes,
                        sim::ValueFacts& facts) {
  std::int64_t needed = sim::store_bytes(plan);
  if (needed > std::min(data_budget_bytes, memory_bytes)) {
    facts.note = needed > data_budget_bytes
                     ? fmt::format("it needs {}, above the data budget of {}", bytes_text(needed),
                                   bytes_text(data_budget_bytes))
                     : fmt::format("it needs {}, above the memory of {}", bytes_text(needed),
                                   bytes_text(memory_bytes));
    return;
  }
  Hasher all;
  std::size_t next = 0;
  std::int64_t elements = 0;
  auto take = [&](TensorId tensor, Rank rank, std::span<const std::byte> bytes) {
    RESHARD_CHECK(
        next < facts.shards.size() && owner_of(facts.shards[next]) == ShardOwner(tensor, rank),
        "the store has different shards");
    facts.shards[next++].expected = digest_of(bytes);
    elements += static_cast<std::int64_t>(bytes.size());
    all.add(bytes);
  };
  sim::Store store;
  std::unique_ptr<PreparedPlan> prepared = store.prepare(plan);
  sim::PlanPatterns(plan, stored).fill(*prepared);
  prepared->run();
  sim::take_all(*prepared, plan, take);
  facts.store_ran = true;
  facts.digest.reset();
  if (elements > 0 && facts.hold()) facts.digest = all.digest();
}

}  // namespace reshard::tools
