// SPDX-License-Identifier: BSD-3-Clause
#include "tools/executor_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/report/measurements.h"
#include "sim/store/data_check.h"
#include "sim/store/store.h"

namespace reshard::tools {

namespace {

// What travels between processes is lists of 64-bit numbers.
using Numbers = std::vector<std::int64_t>;

std::vector<Numbers> gathered(Processes& processes, const Numbers& mine) {
  std::vector<Numbers> out;
  for (const std::vector<std::byte>& bytes : processes.gather(std::as_bytes(std::span(mine)))) {
    RESHARD_CHECK(bytes.size() % sizeof(std::int64_t) == 0,
                  "gathered bytes are no list of numbers");
    Numbers& numbers = out.emplace_back(bytes.size() / sizeof(std::int64_t));
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  }
  return out;
}

// Takes a list of numbers apart from its front.
class Unpacking {
 public:
  explicit Unpacking(const Numbers& numbers) : numbers_(numbers) {}
  bool at_end() const { return next_ == numbers_.size(); }
  std::int64_t take() {
    RESHARD_CHECK(!at_end(), "a gathered list ends too early");
    return numbers_[next_++];
  }
  std::uint64_t take_bits() { return static_cast<std::uint64_t>(take()); }
  Rank take_rank() { return Rank{static_cast<std::int32_t>(take())}; }

 private:
  const Numbers& numbers_;
  std::size_t next_ = 0;
};

void pack(const sim::ShardFacts& shard, Numbers& out) {
  PatternMismatch wrong = shard.wrong.value_or(PatternMismatch{0, 0, 0, 0});
  for (std::int64_t number :
       {std::int64_t{to_int(shard.rank)}, shard.elements,
        static_cast<std::int64_t>(shard.digest.high), static_cast<std::int64_t>(shard.digest.low),
        wrong.count, wrong.index, static_cast<std::int64_t>(wrong.expected),
        static_cast<std::int64_t>(wrong.found)})
    out.push_back(number);
}

sim::ShardFacts unpack_shard(Unpacking& in) {
  sim::ShardFacts out{};
  out.rank = in.take_rank();
  out.elements = in.take();
  out.digest.high = in.take_bits();
  out.digest.low = in.take_bits();
  PatternMismatch wrong{};
  wrong.count = in.take();
  wrong.index = in.take();
  wrong.expected = in.take_bits();
  wrong.found = in.take_bits();
  if (wrong.count > 0) out.wrong = wrong;
  return out;
}

void pack(const Timeline& run, Numbers& out) {
  out.push_back(run.end_ps);
  out.push_back(static_cast<std::int64_t>(run.spans.size()));
  for (const Span& span : run.spans)
    for (std::int64_t number :
         {std::int64_t{span.step}, std::int64_t{to_int(span.rank)}, span.start_ps, span.end_ps})
      out.push_back(number);
}

void unpack_run(Unpacking& in, Timeline& run) {
  run.end_ps = std::max(run.end_ps, in.take());
  for (std::int64_t count = in.take(); count > 0; --count) {
    Span span{OpId{0}, static_cast<std::int32_t>(in.take()), in.take_rank(), 0, 0};
    span.start_ps = in.take();
    span.end_ps = in.take();
    run.spans.push_back(span);
  }
}

// Every part of the plan has one span in every run, and nothing else has.
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

std::vector<Rank> destination_ranks(const Plan& plan) {
  std::vector<Rank> out = plan.request().destination().mesh().ranks();
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

FillSource pattern_fill(const Request& request, const Pattern& pattern) {
  return [&](Rank rank, std::span<std::byte> bytes) {
    std::int32_t position = request.source().mesh().position_of(rank).value();
    pattern.fill(request.source(), position, request.addend_of(position), bytes);
  };
}

std::vector<Timeline> timed_runs(PreparedPlan& prepared, const RunCounts& counts) {
  for (std::int64_t i = 0; i < counts.warm_up; ++i) prepared.run();
  std::vector<Timeline> out;
  out.reserve(to_index(counts.iterations));
  for (std::int64_t i = 0; i < counts.iterations; ++i) out.push_back(prepared.run());
  return out;
}

CheckedShards checked_shards(PreparedPlan& prepared, const Request& request,
                             const Pattern& pattern) {
  CheckedShards out;
  Hasher all;
  std::int64_t elements = 0;
  prepared.take([&](Rank rank, std::span<const std::byte> bytes) {
    std::int32_t position = request.destination().mesh().position_of(rank).value();
    sim::ShardFacts facts{};
    facts.rank = rank;
    facts.elements = static_cast<std::int64_t>(bytes.size()) / size_bytes(request.dtype());
    facts.digest = digest_of(bytes);
    facts.wrong =
        pattern.check(request.destination(), position, request.addends_wanted(position), bytes);
    all.add(bytes);
    elements += facts.elements;
    out.shards.push_back(facts);
  });
  if (elements > 0) out.digest = all.digest();
  return out;
}

std::vector<Timeline> gathered_runs(Processes& processes, const Plan& plan,
                                    const std::vector<Timeline>& mine) {
  Numbers numbers;
  for (const Timeline& run : mine) pack(run, numbers);
  std::vector<Numbers> lists = gathered(processes, numbers);
  if (!processes.is_root()) return {};
  std::vector<Timeline> out(mine.size());
  for (const Numbers& list : lists) {
    Unpacking in(list);
    for (Timeline& run : out) unpack_run(in, run);
    RESHARD_CHECK(in.at_end(), "a process made more runs than the root");
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
  Numbers numbers;
  for (const sim::ShardFacts& shard : mine) pack(shard, numbers);
  std::vector<Numbers> lists = gathered(processes, numbers);
  if (!processes.is_root()) return {};
  std::vector<sim::ShardFacts> out;
  for (const Numbers& list : lists)
    for (Unpacking in(list); !in.at_end();) out.push_back(unpack_shard(in));
  std::sort(out.begin(), out.end(),
            [](const sim::ShardFacts& a, const sim::ShardFacts& b) { return a.rank < b.rank; });
  std::vector<Rank> ranks;
  std::transform(out.begin(), out.end(), std::back_inserter(ranks),
                 [](const sim::ShardFacts& shard) { return shard.rank; });
  RESHARD_CHECK(ranks == destination_ranks(plan),
                "the processes hold shards of ranks " + ranks_text(ranks));
  return out;
}

void compare_with_store(const Plan& plan, std::int64_t data_budget_bytes, std::int64_t memory_bytes,
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
  Pattern pattern(plan.request());
  Hasher all;
  std::size_t next = 0;
  std::int64_t elements = 0;
  sim::Store().run(plan, pattern_fill(plan.request(), pattern),
                   [&](Rank rank, std::span<const std::byte> bytes) {
                     RESHARD_CHECK(next < facts.shards.size() && facts.shards[next].rank == rank,
                                   "the store has other shards");
                     facts.shards[next++].expected = digest_of(bytes);
                     elements += static_cast<std::int64_t>(bytes.size());
                     all.add(bytes);
                   });
  facts.store_ran = true;
  facts.digest.reset();
  if (elements > 0 && facts.hold()) facts.digest = all.digest();
}

}  // namespace reshard::tools
