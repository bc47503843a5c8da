// SPDX-License-Identifier: BSD-3-Clause
// The writers of the reports: tables for people (table_writer.cpp), JSON (json_writer.cpp; fields
// and their order are described in tools/json-schemas.md), CSV (csv_writer.cpp), and topologies
// (topology_writer.cpp). Timelines are drawn by perfetto.h.
#pragma once

#include <string>
#include <vector>

#include "core/topology/topology.h"
#include "sim/report/report.h"
#include "sim/trace/replay.h"

namespace reshard::sim {

// "schema": "reshard.plan/1". In the table `explain` adds the reasons, `verbose` the cache.
std::string plan_json(const RunReport& report);
std::string plan_table(const RunReport& report, bool explain, bool verbose);

// "schema": "reshard.simulate/1". `verbose` adds the cache.
std::string simulate_json(const RunReport& report);
std::string simulate_table(const RunReport& report, bool verbose);

// "schema": "reshard.validate/1". `verbose` adds the digest of every shard.
std::string validate_json(const ValidateReport& report);
std::string validate_table(const ValidateReport& report, bool verbose);

// "schema": "reshard.replay/1". `verbose` adds a row per operation.
std::string replay_json(const ReplayReport& report);
std::string replay_table(const ReplayReport& report, bool verbose);

// "schema": "reshard.sweep/1". `verbose` adds a row per pair with one column per planner.
std::string sweep_json(const SweepReport& report);
std::string sweep_table(const SweepReport& report, bool verbose);
// RFC 4180 with a header row.
std::string sweep_csv(const SweepReport& report);

// A topology: devices, links, groups, and which route joins which pair of devices of a node.
// "schema": "reshard.topology/1".
std::string topology_json(const Topology& topology);
std::string topology_table(const Topology& topology);

}  // namespace reshard::sim
