// SPDX-License-Identifier: BSD-3-Clause
// Shared by the replay tests: traces from text, and hooks with the real planners, proof, cache and
// store, as the tools make them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/store/data_check.h"
#include "sim/study/study.h"
#include "sim/trace/trace.h"

namespace reshard::test {

inline sim::Trace trace_of(const std::string& text) {
  std::istringstream in(text);
  return sim::parse_trace(in, "t.jsonl");
}

// The header, then the lines.
inline sim::Trace trace_of(const std::string& header, const std::vector<std::string>& lines) {
  std::string text = header + "\n";
  for (const std::string& line : lines) text += line + "\n";
  return trace_of(text);
}

// `more`: further fields, each behind ", ".
inline std::string redistribute(const std::string& dtype, const std::string& shape,
                                const std::string& from, const std::string& to,
                                const std::string& mesh, const std::string& more = "") {
  return "{\"op\": \"redistribute\", \"dtype\": \"" + dtype + "\", \"shape\": " + shape +
         ", \"from\": \"" + from + "\", \"to\": \"" + to + "\", \"mesh\": \"" + mesh + "\"" + more +
         "}";
}

class Rig {
 public:
  explicit Rig(const Topology& topology, std::string_view planner = "auto",
               std::int64_t capacity = 4096)
      : topology_(std::make_shared<const Topology>(topology)),
        studies_(topology_, find_planner(planner),
                 {.cache_capacity = capacity, .transport = {TransportKind::Ideal, {}}}) {
    hooks.study = [this](const Request& request, std::optional<TransportKind> transport) {
      return studies_.of(request, transport);
    };
    hooks.check_data = [this](const std::shared_ptr<const Plan>& plan, std::int64_t budget_bytes) {
      budgets.push_back(budget_bytes);
      return sim::move_and_check(
          plan, [this](const Request& smaller) { return studies_.of(smaller)->shared_plan(); },
          budget_bytes, std::int64_t{8} << 30);
    };
    hooks.carriage = [this](std::optional<TransportKind> kind) { return studies_.transport(kind); };
    hooks.cache_statistics = [this] { return studies_.cache_statistics(); };
  }

  sim::ReplayReport replay(const sim::Trace& trace,
                           std::int64_t budget_bytes = std::int64_t{2} << 30) {
    return sim::replay(trace, *topology_, hooks, budget_bytes);
  }

  sim::ReplayHooks hooks;
  std::vector<std::int64_t> budgets;  // as handed to check_data

 private:
  std::shared_ptr<const Topology> topology_;
  sim::Studies studies_;
};

}  // namespace reshard::test
