// SPDX-License-Identifier: BSD-3-Clause
// The C API: from texts to proved plans.
#include <cstdlib>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/printable.h"
#include "core/layout/request.h"
#include "core/layout/stages.h"
#include "core/plan/join.h"
#include "core/proof/proof.h"
#include "core/text/plan_text.h"
#include "core/topology/topology_text.h"
#include "sim/job/job.h"
#include "sim/job/job_file.h"
#include "sim/machines/presets.h"
#include "sim/trace/jobs/named_order.h"
#include "tools/capi/guard.h"
#include "tools/capi/handles.h"

using namespace reshard;
using namespace reshard::capi;

namespace {

// As the command line's: it is printed.
constexpr std::int64_t kCacheCapacity = 1024;

using TopologyRef = std::shared_ptr<const Topology>;

// The caller's topology, which must have all the ranks, or a default that has: `named` if it is not
// null.
TopologyRef topology_of(const reshard_topology* topology, Rank last, TopologyRef named) {
  std::int64_t highest = to_int(last);
  if (topology == nullptr && named) return named;
  if (topology == nullptr)
    return std::make_shared<const Topology>(sim::default_topology(highest + 1));
  sim::require_devices(*topology->topology, highest);
  return topology->topology;
}

reshard_times times_of(sim::Study& study) {
  const Bound& bound = study.bound();
  reshard_times out{};
  out.time_ps = study.time_ps();
  out.bound_ps = bound.time_ps();
  out.cut_ps = bound.cut_ps;
  out.volume_ps = bound.volume_ps;
  out.latency_ps = bound.latency_ps;
  out.price_ps = bound.price_ps;
  out.holder_ps = bound.holder_ps;
  return out;
}

TopologyRef held(Topology&& topology) {
  return std::make_shared<const Topology>(std::move(topology));
}

// JSON and pages show names, so that they must be what files of requests can have.
std::string name_of(const char* given) {
  std::string name = text_of(given);
  for (std::string_view rest = name; !rest.empty(); rest.remove_prefix(first_character(rest).bytes))
    if (first_character(rest).bytes == 0)
      throw InputError("name: expected UTF-8 text, found " + reshard::quoted(name));
  return name;
}

void require_some(std::int32_t count) {
  if (count < 1) throw InputError("count: expected 1 or more, found " + std::to_string(count));
}

template <class Number>
Number require_not_negative(Number number, std::string_view name) {
  if (number < 0) throw InputError(fmt::format("{}: expected 0 or more, found {}", name, number));
  return number;
}

std::string id_of(const char* given) {
  if (given != nullptr && *given == 0)
    throw InputError("id: expected text of at least one character, found ''");
  return text_of(given);
}

std::vector<std::string> after_of(const reshard_request_texts& texts) {
  std::vector<std::string> out;
  if (require_not_negative(texts.after_count, "after_count") > 0) given(texts.after, "after");
  for (std::int32_t i = 0; i < texts.after_count; ++i)
    out.emplace_back(&given(texts.after[i], fmt::format("after[{}]", i)));
  return out;
}

// The requests, in their order.
sim::Subject subject_of(std::span<const reshard_request* const> requests) {
  sim::Subject subject;
  sim::NamedOrder order;
  for (const reshard_request* each : requests) {
    subject.requests.push_back(each->request);
    order.add(each->id, each->after);
  }
  subject.stages = stages_of(order.resolved());
  return subject;
}

bool flag_of(std::int32_t flag, std::string_view name) {
  if (flag != 0 && flag != 1)
    throw InputError(fmt::format("{}: expected 0 or 1, found {}", name, flag));
  return flag == 1;
}

MemoryLimits limits_of(const reshard_plan_options& options) {
  MemoryLimits out;
  if (require_not_negative(options.memory_limit_bytes, "memory_limit_bytes") > 0)
    out.limit_bytes = options.memory_limit_bytes;
  if (require_not_negative(options.extra_memory_bytes, "extra_memory_bytes") > 0)
    out.extra_bytes = options.extra_memory_bytes;
  if (flag_of(options.no_extra_memory, "no_extra_memory")) {
    if (out.extra_bytes)
      throw InputError("no_extra_memory: expected 0 with extra_memory_bytes, found 1");
    out.extra_bytes = 0;
  }
  out.free_sources = flag_of(options.free_source, "free_source");
  return out;
}

// A new handle. The subject has requests.
reshard_plan* planned(const sim::Subject& subject, const reshard_topology* topology,
                      const reshard_plan_options* options) {
  reshard_plan_options chosen{};
  if (options != nullptr) chosen = taken(options, "options");
  require_zero(chosen.reserved, "options.reserved");
  sim::StudyOptions wanted;
  wanted.memory = limits_of(chosen);
  // For reports. The critical path is recorded by a run of its own: recording it in every run that
  // `auto` makes would slow planning by a third.
  wanted.explain = true;
  wanted.record = {.spans = true};
  wanted.cache_capacity = kCacheCapacity;
  Rank last = subject.highest_rank();
  TopologyRef named;
  if (topology == nullptr && !subject.topology.empty())
    named = sim::topology_for(subject.topology, last);
  auto job = std::make_unique<sim::Job>(
      subject, topology_of(topology, last, named),
      find_planner(chosen.planner == nullptr ? "auto" : chosen.planner), wanted);
  return new reshard_plan(std::move(job), named, subject.layouts);
}

}  // namespace

reshard_plan::reshard_plan(std::unique_ptr<sim::Job> planned, TopologyRef named,
                           std::shared_ptr<const sim::ModelLayouts> of)
    : plan(planned->study().shared_plan()),
      study(planned->study()),
      request_text(requests_text(*plan)),
      named_topology(std::move(named)),
      layouts(std::move(of)),
      job_(std::move(planned)) {}

reshard_plan::reshard_plan(const std::shared_ptr<const Plan>& read)
    : plan(read), study(read, nullptr), request_text(requests_text(*plan)) {}

reshard_plan::~reshard_plan() = default;

const std::vector<std::string>& reshard_plan::request_texts() const {
  std::call_once(has_request_texts_, [&] {
    for (const Request& request : plan->tensors) request_texts_.push_back(request.text());
  });
  return request_texts_;
}

std::unique_ptr<sim::Job> reshard_plan::job_of_plan(const std::shared_ptr<const Plan>& plan) {
  return std::make_unique<sim::Job>(sim::Subject{{}, plan},
                                    sim::topology_for("", plan->ranks.back()), find_planner("auto"),
                                    sim::StudyOptions{});
}

extern "C" {

int32_t reshard_request_create(const reshard_request_texts* texts, reshard_request** request) {
  return guarded([&] {
    reshard_request_texts t = taken(texts, "texts");
    require_zero(t.reserved, "texts.reserved");
    require_zero(t.reserved_after, "texts.reserved_after");
    given(t.mesh, "mesh");
    given(t.shape, "shape");
    given(t.from, "from");
    given(t.to, "to");
    given(request, "request");
    RequestTexts parts{t.mesh,
                       text_of(t.ranks),
                       text_of(t.to_mesh),
                       text_of(t.to_ranks),
                       t.shape,
                       text_of(t.dtype),
                       t.from,
                       t.to};
    *request =
        new reshard_request{parse_request(parts).named(name_of(t.name)), id_of(t.id), after_of(t)};
  });
}

void reshard_request_free(reshard_request* request) { delete request; }

int32_t reshard_topology_create(const char* name, reshard_topology** topology) {
  return guarded([&] {
    given(name, "name");
    given(topology, "topology");
    *topology = new reshard_topology{held(sim::find_topology(name))};
  });
}

int32_t reshard_topology_parse(const char* text, int64_t count, reshard_topology** topology) {
  return guarded([&] {
    given(text, "text");
    given(topology, "topology");
    std::optional<std::int64_t> nodes;
    if (require_not_negative(count, "count") > 0) nodes = count;
    *topology = new reshard_topology{held(build_topology(parse_topology(text, "text"), nodes))};
  });
}

void reshard_topology_free(reshard_topology* topology) { delete topology; }

int32_t reshard_plan_create(const reshard_request* request, const reshard_topology* topology,
                            const reshard_plan_options* options, reshard_plan** plan) {
  return guarded([&] {
    given(plan, "plan");
    const reshard_request* only = &given(request, "request");
    *plan = planned(subject_of({&only, 1}), topology, options);
  });
}

int32_t reshard_plan_create_job(const reshard_request* const* requests, int32_t count,
                                const reshard_topology* topology,
                                const reshard_plan_options* options, reshard_plan** plan) {
  return guarded([&] {
    require_some(count);
    given(requests, "requests");
    given(plan, "plan");
    for (std::int32_t i = 0; i < count; ++i) given(requests[i], fmt::format("requests[{}]", i));
    *plan = planned(subject_of({requests, to_index(count)}), topology, options);
  });
}

int32_t reshard_plan_create_job_from_file(const char* path, const reshard_topology* topology,
                                          const reshard_plan_options* options,
                                          reshard_plan** plan) {
  return guarded([&] {
    given(path, "path");
    given(plan, "plan");
    *plan = planned(sim::read_job(path), topology, options);
  });
}

int32_t reshard_plan_create_job_from_text(const char* text, int64_t text_bytes,
                                          const reshard_topology* topology,
                                          const reshard_plan_options* options,
                                          reshard_plan** plan) {
  return guarded([&] {
    given(text, "text");
    given(plan, "plan");
    std::istringstream in(
        std::string(text, to_index(require_not_negative(text_bytes, "text_bytes"))));
    *plan = planned(sim::parse_job(in, "text"), topology, options);
  });
}

int32_t reshard_plan_parse(const char* text, int64_t text_bytes, reshard_plan** plan) {
  return guarded([&] {
    given(text, "text");
    given(plan, "plan");
    require_not_negative(text_bytes, "text_bytes");
    auto read = std::make_shared<const Plan>(
        parse_plan(std::string_view(text, to_index(text_bytes)), "text"));
    *plan = new reshard_plan(read);
  });
}

int32_t reshard_plan_join(const reshard_plan* const* plans, int32_t count, reshard_plan** plan) {
  return guarded([&] {
    require_some(count);
    given(plans, "plans");
    given(plan, "plan");
    std::vector<Plan> all;
    for (std::int32_t i = 0; i < count; ++i)
      all.push_back(*given(plans[i], fmt::format("plans[{}]", i)).plan);
    *plan = new reshard_plan(std::make_shared<const Plan>(join(all)));
  });
}

void reshard_plan_free(reshard_plan* plan) { delete plan; }

int32_t reshard_plan_write(const reshard_plan* plan, char** text, int64_t* text_bytes) {
  return guarded([&] { give_text(to_text(*given(plan, "plan").plan), text, text_bytes); });
}

void reshard_text_free(char* text) { std::free(text); }

int32_t reshard_plan_prove(const reshard_plan* plan) {
  return guarded([&] { prove(*given(plan, "plan").plan); });
}

int32_t reshard_plan_get_times(const reshard_plan* plan, const reshard_topology* topology,
                               reshard_times* times) {
  return guarded([&] {
    const reshard_plan& handle = given(plan, "plan");
    TopologyRef asked = topology_of(topology, handle.plan->ranks.back(), handle.named_topology);
    give(handle.with_job([&](sim::Job& job) {
      // Elsewhere, in a copy.
      if (!job.study().is_on(*asked)) {
        sim::Study elsewhere = job.study().on(asked);
        return times_of(elsewhere);
      }
      return times_of(job.study());
    }),
         times, "times");
  });
}
}
