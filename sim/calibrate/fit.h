// SPDX-License-Identifier: BSD-3-Clause
// Calibration: a machine's parameters, fitted so that the nccl transport takes what was measured.
//
// Parameters are the figures of core/topology/machine.h and, where ranks that were measured reach
// each other by more than NVLink, the rates of the links on the way: ports and shared resources of
// equal rate are one parameter.
//
// Only what the rows can tell is fitted: a parameter that changes no prediction by more than one
// part in a thousand is left as it is, and so is one of two that change all predictions alike; the
// result names both. The fit is of relative errors, damped least squares (Levenberg, Marquardt) in
// the logarithms of the parameters, weighted so that the mean absolute error falls and a stray row
// counts little; parameters stay within their bounds, and near what they were where rows say little
// about them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/topology/topology_text.h"
#include "sim/calibrate/measured.h"
#include "sim/transport/transport.h"

namespace reshard::sim {

// What the nccl transport takes for a row. Throws InputError where a rank has no device.
std::int64_t predicted_ps(const Topology& topology, const MeasuredCollective& row,
                          const std::string& nccl_version);

struct Fitted {
  std::string name;  // "nccl.launch", "port pcie", "shared uplink0-out, uplink1-out, .."
  std::string meaning;
  FigureUnit unit;
  std::int64_t before = 0, after = 0;  // in the unit; `before`: stated or concluded
};

struct Calibration {
  std::vector<Fitted> fitted;
  std::vector<std::string> untold;  // change nothing that was measured
  // The first was left as it was: it cannot be told from the second.
  std::vector<std::pair<std::string, std::string>> alike;
  TopologyDescription machine;  // with what was fitted
};

// At least one row.
Calibration calibrate(const TopologyDescription& base, const std::vector<MeasuredCollective>& rows,
                      const std::string& nccl_version);

struct RowError {
  const MeasuredCollective* row;
  std::int64_t predicted_ps;
  double error() const;  // relative, signed
};
std::vector<RowError> errors_on(const Topology& topology,
                                const std::vector<MeasuredCollective>& rows,
                                const std::string& nccl_version);
struct ErrorSummary {
  std::size_t rows = 0;
  double mean = 0, p90 = 0, worst = 0;  // absolute, in percent
};
ErrorSummary summary_of(const std::vector<RowError>& errors);

}  // namespace reshard::sim
