// SPDX-License-Identifier: BSD-3-Clause
// The C API: from texts to proved plans.
#include <cstdlib>

#include "core/layout/request.h"
#include "core/proof/proof.h"
#include "core/text/plan_text.h"
#include "core/topology/topology_text.h"
#include "sim/machines/presets.h"
#include "sim/study/study.h"
#include "tools/capi/guard.h"
#include "tools/capi/handles.h"

using namespace reshard;
using namespace reshard::capi;

namespace {

using TopologyRef = std::shared_ptr<const Topology>;

// The caller's topology, which must have all the ranks, or a default that has.
TopologyRef topology_of(const reshard_topology* topology, Rank last) {
  std::int64_t highest = to_int(last);
  if (topology == nullptr)
    return std::make_shared<const Topology>(sim::default_topology(highest + 1));
  sim::require_devices(*topology->topology, highest);
  return topology->topology;
}

TopologyRef held(Topology&& topology) {
  return std::make_shared<const Topology>(std::move(topology));
}

}  // namespace

extern "C" {

int32_t reshard_request_create(const reshard_request_texts* texts, reshard_request** request) {
  return guarded([&] {
    reshard_request_texts t = taken(texts, "texts");
    require_zero(t.reserved, "texts.reserved");
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
    *request = new reshard_request{parse_request(parts)};
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
    if (count < 0) throw InputError("count: expected 0 or more, found " + std::to_string(count));
    std::optional<std::int64_t> nodes;
    if (count > 0) nodes = count;
    *topology = new reshard_topology{held(build_topology(parse_topology(text, "text"), nodes))};
  });
}

void reshard_topology_free(reshard_topology* topology) { delete topology; }

int32_t reshard_plan_create(const reshard_request* request, const reshard_topology* topology,
                            const reshard_plan_options* options, reshard_plan** plan) {
  return guarded([&] {
    const Request& asked = given(request, "request").request;
    given(plan, "plan");
    reshard_plan_options chosen{};
    if (options != nullptr) chosen = taken(options, "options");
    require_zero(chosen.reserved, "options.reserved");
    if (chosen.memory_limit_bytes < 0)
      throw InputError("memory_limit_bytes: expected 0 or more, found " +
                       std::to_string(chosen.memory_limit_bytes));
    sim::StudyOptions wanted;
    if (chosen.memory_limit_bytes > 0) wanted.memory_limit_bytes = chosen.memory_limit_bytes;
    sim::Studies studies(topology_of(topology, asked.ranks().back()),
                         find_planner(chosen.planner == nullptr ? "auto" : chosen.planner), wanted);
    *plan = new reshard_plan(*studies.of(asked));
  });
}

int32_t reshard_plan_parse(const char* text, int64_t text_bytes, reshard_plan** plan) {
  return guarded([&] {
    given(text, "text");
    given(plan, "plan");
    if (text_bytes < 0)
      throw InputError("text_bytes: expected 0 or more, found " + std::to_string(text_bytes));
    auto read = std::make_shared<const Plan>(
        parse_plan(std::string_view(text, to_index(text_bytes)), "text"));
    *plan = new reshard_plan(sim::Study(std::move(read), nullptr));
  });
}

int32_t reshard_plan_join(const reshard_plan* const* plans, int32_t count, reshard_plan** plan) {
  return guarded([&] {
    given(plans, "plans");
    given(plan, "plan");
    if (count < 1) throw InputError("count: expected 1 or more, found " + std::to_string(count));
    std::vector<Plan> all;
    for (int32_t i = 0; i < count; ++i) all.push_back(*given(plans[i], "plans").plan);
    *plan = new reshard_plan(sim::Study(std::make_shared<const Plan>(join(all)), nullptr));
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
    const sim::Study& known = given(plan, "plan").study;
    sim::Study study = known.on(topology_of(topology, known.plan().ranks.back()));
    const Bound& bound = study.bound();
    reshard_times out{};
    out.time_ps = study.time_ps();
    out.bound_ps = bound.time_ps();
    out.cut_ps = bound.cut_ps;
    out.volume_ps = bound.volume_ps;
    out.latency_ps = bound.latency_ps;
    out.price_ps = bound.price_ps;
    out.holder_ps = bound.holder_ps;
    give(out, times, "times");
  });
}
}
