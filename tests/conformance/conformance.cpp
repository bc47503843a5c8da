// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/conformance.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "sim/store/data_check.h"
#include "sim/store/store.h"
#include "tests/support/any_planner.h"
#include "tests/support/case_sets.h"
#include "tests/support/cases.h"
#include "tests/support/drawn_models.h"
#include "tests/support/halved.h"
#include "tests/support/rough_data.h"
#include "tests/support/star.h"

namespace reshard::test {
namespace {

class Conformance {
 public:
  Conformance(Executor& executor, const ConformanceOptions& options)
      : executor_(executor), options_(options), topology_(star(kDrawnRanks)) {
    input_.topology = &topology_;
  }

  ConformanceReport run() {
    if (options_.small_cases) run_small_cases();
    std::uint64_t seed = options_.seed;
    for (std::int64_t done = 0; done < options_.draws; ++seed) done += run_draw(seed);
    return report_;
  }

  // Destination shards taken by this process, and those of all processes.
  std::int64_t taken() const { return taken_; }
  std::int64_t expected_taken() const { return expected_taken_; }

 private:
  void run_small_cases() {
    std::int64_t number = 0;
    for (const CaseSet& set : case_sets())
      for (const std::vector<std::int32_t>& mesh : set.meshes) {
        std::int64_t ranks = 1;
        for (std::int32_t extent : mesh) ranks *= extent;
        if (ranks > options_.world) continue;
        all_small_cases(set.shapes, set.dtype, mesh, set.choices,
                        [&](const SmallLayout& source, const SmallLayout& destination) {
                          if (number++ % options_.every != 0) return;
                          std::optional<Request> request =
                              request_of(source.layout, destination.layout);
                          if (!request) return;
                          ++report_.requests;
                          Prng prng(static_cast<std::uint64_t>(number));
                          for (const PlannerRow* planner : own_planners())
                            if (auto plan = plan_by(*planner, *request, input_))
                              run_plan(*plan, prng);
                        });
      }
  }

  // One request by one of the planners, two in one plan, or a job of many; 0 where the draw is
  // none.
  std::int64_t run_draw(std::uint64_t seed) {
    Prng prng(seed);
    seed_ = seed;
    if (seed % options_.models_every == 0) return run_model(prng);
    std::optional<Request> request = drawn_request(prng);
    if (!request) return 0;
    ++report_.requests;
    bool many = prng.one_in(4);
    Plan plan = many ? plan_of_job(*request, prng) : any_plan(prng, *request, input_);
    if (!many && prng.one_in(4))
      if (std::optional<Request> other = drawn_request(prng))
        plan = join({plan, any_plan(prng, *other, input_)});
    report_.jobs += many;
    run_plan(prng.one_in(2) ? with_halved_collectives(plan) : plan, prng);
    return 1;
  }

  std::int64_t run_model(Prng& prng) {
    DrawnModel model = draw_model(prng, options_.world);
    StoredRequests stored(*model.source, *model.destination);
    Plan plan = any_plan(prng, Demand(stored.requests()), input_);
    ++report_.requests;
    ++report_.models;
    if (std::optional<Refutation> refutation = check_plan(plan).refutation)
      fail(plan, "refuted: " + refutation->what);
    std::unique_ptr<PreparedPlan> prepared = executor_.prepare(plan);
    sim::PlanPatterns patterns(plan, &stored);
    patterns.fill(*prepared);
    prepared->run();
    ++report_.runs;
    sim::take_all(*prepared, plan,
                  [&](TensorId tensor, Rank rank, std::span<const std::byte> bytes) {
                    ++taken_;
                    if (auto wrong = patterns.check(tensor, rank, bytes))
                      fail(plan, fmt::format("tensor {}: rank {} has {} wrong elements",
                                             to_index(tensor), to_int(rank), wrong->count));
                  });
    patterns.check_padding();
    for (const Request& request : plan.tensors)
      expected_taken_ += request.destination().mesh().size();
    return 1;
  }

  // This request and others, some of them equal, planned together.
  Plan plan_of_job(const Request& first, Prng& prng) {
    std::vector<Request> job{first};
    for (auto count = prng.between(2, prng.one_in(8) ? 20 : 6); std::ssize(job) < count;) {
      std::optional<Request> next = prng.one_in(3) ? prng.pick(job) : drawn_request(prng);
      if (next) job.push_back(*std::move(next));
    }
    return any_plan(prng, Demand(job), input_);
  }

  std::optional<Request> drawn_request(Prng& prng) {
    DrawnPair pair = prng.one_in(6) ? draw_pair_with_boxes(prng, options_.world)
                                    : draw_pair(prng, options_.world);
    return request_of(pair.source, pair.destination);
  }

  std::optional<Request> request_of(const Layout& source, const Layout& destination) {
    try {
      return std::optional<Request>(std::in_place, source, destination);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  void run_plan(const Plan& plan, Prng& prng) {
    if (std::optional<Refutation> refutation = check_plan(plan).refutation)
      return fail(plan, "refuted: " + refutation->what);
    bool rounds = false;
    for (const Request& request : plan.tensors)
      rounds = rounds || ((is_floating(request.dtype()) || request.dtype() == DType::C64) &&
                          request.fold().fold_count > 1);
    bool rough = rounds && !executor_.folds_in_own_order(plan);
    report_.rough_runs += rough;
    report_.several_tensors += plan.tensors.size() > 1;
    std::vector<Shards> sources;
    for (const Request& request : plan.tensors)
      sources.push_back(rough ? rough_sources(prng, request) : pattern_sources(request));
    compare(plan, sources, moved(store_, plan, sources));
  }

  void compare(const Plan& plan, const std::vector<Shards>& sources,
               const std::vector<Shards>& expected) {
    std::unique_ptr<PreparedPlan> prepared = executor_.prepare(plan);
    for (std::size_t t = 0; t < sources.size(); ++t)
      fill(*prepared, sources[t], TensorId{static_cast<std::int32_t>(t)});
    int runs = report_.requests % 4 == 0 ? 2 : 1;
    for (int run = 0; run < runs; ++run) {
      prepared->run();
      ++report_.runs;
    }
    for (std::size_t t = 0; t < expected.size(); ++t)
      take(plan, *prepared, expected[t], TensorId{static_cast<std::int32_t>(t)});
  }

  void take(const Plan& plan, PreparedPlan& prepared, const Shards& expected, TensorId tensor) {
    std::int32_t last = -1;
    std::int64_t taken = 0;
    prepared.take(
        [&](Rank rank, std::span<const std::byte> bytes) {
          ++taken;
          if (to_int(rank) <= last)
            fail(plan, fmt::format("rank {} is taken after rank {}", to_int(rank), last));
          last = to_int(rank);
          const std::vector<std::byte>& shard = expected.at(rank);
          if (!std::equal(shard.begin(), shard.end(), bytes.begin(), bytes.end()))
            fail(plan, fmt::format("rank {} differs from the store", to_int(rank)));
        },
        tensor);
    taken_ += taken;
    expected_taken_ += static_cast<std::int64_t>(expected.size());
    if (executor_.processes().count() == 1 && taken != static_cast<std::int64_t>(expected.size()))
      fail(plan, fmt::format("{} destination shards", taken));
  }

  void fail(const Plan& plan, const std::string& what) {
    ++report_.failed;
    if (report_.failures.size() < 10)
      report_.failures.push_back(
          fmt::format("seed {}, {} by {}: {}", seed_, requests_text(plan), plan.planner, what));
  }

  Executor& executor_;
  const ConformanceOptions& options_;
  Topology topology_;
  PlannerInput input_;
  sim::Store store_{{.poison = true}};
  ConformanceReport report_;
  std::uint64_t seed_ = 0;  // 0: a small case
  std::int64_t taken_ = 0, expected_taken_ = 0;
};

// "failed taken\nfailure\n..." of one process.
std::vector<std::byte> packed(const ConformanceReport& report, std::int64_t taken) {
  std::string out = fmt::format("{} {}\n", report.failed, taken);
  for (const std::string& failure : report.failures) out += failure + "\n";
  auto bytes = std::as_bytes(std::span(out));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

ConformanceReport check_conformance(Executor& executor, const ConformanceOptions& options) {
  Conformance conformance(executor, options);
  ConformanceReport report = conformance.run();
  Processes& processes = executor.processes();
  std::vector<std::vector<std::byte>> all = processes.gather(packed(report, conformance.taken()));
  if (!processes.is_root() || processes.count() == 1) return report;
  report.failed = 0;
  report.failures.clear();
  std::int64_t taken = 0;
  for (std::size_t p = 0; p < all.size(); ++p) {
    std::string rest(reinterpret_cast<const char*>(all[p].data()), all[p].size());
    char* end = nullptr;
    report.failed += std::strtoll(rest.c_str(), &end, 10);
    taken += std::strtoll(end, &end, 10);
    if (report.failures.size() < 10 && end[1] != '\0')
      report.failures.push_back(fmt::format("process {}: {}", p, end + 1));
  }
  if (taken != conformance.expected_taken()) {
    ++report.failed;
    report.failures.push_back(fmt::format("{} destination shards were taken, {} expected", taken,
                                          conformance.expected_taken()));
  }
  return report;
}

std::string text(const ConformanceReport& report) {
  std::string out = fmt::format(
      "{} requests, {} runs, {} of the plans on data whose sums round, {} of several "
      "tensors, {} of these planned together, {} of models in buffers, {} failed",
      report.requests, report.runs, report.rough_runs, report.several_tensors, report.jobs,
      report.models, report.failed);
  for (const std::string& failure : report.failures) out += "\n  " + failure;
  return out;
}

}  // namespace reshard::test
