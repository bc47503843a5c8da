// SPDX-License-Identifier: BSD-3-Clause
// Calibration: fits a machine's parameters so that the nccl transport predicts the measured times.
//
// The parameters are the figures of core/topology/machine.h and, where measured ranks reach each
// other over more than NVLink, the rates of the links on those routes. Ports and shared resources
// of equal rate form one parameter.
//
// Only parameters that the measured rows determine are fitted. A parameter is kept if a relative
// change of it moves no prediction by more than 1/1000 of that change, or if it affects all
// predictions in the same proportion as another parameter does; the result names the parameters of
// both kinds. The fit minimises relative errors by damped least squares (Levenberg-Marquardt) in
// the logarithms of the parameters, weighted so that it reduces the mean absolute error and
// outliers count little. Parameters stay within their bounds, and close to their previous values
// if the rows depend little on them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/topology/topology_text.h"
#include "sim/calibrate/measured.h"
#include "sim/transport/transport.h"

namespace reshard::sim {

// Time that the nccl transport predicts for a row. Throws InputError if a rank has no device.
std::int64_t predicted_ps(const Topology& topology, const MeasuredCollective& row,
                          const std::string& nccl_version);

struct Fitted {
  std::string name;  // "nccl.launch", "port pcie", "shared uplink0-out, uplink1-out, .."
  std::string meaning;
  FigureUnit unit;
  std::int64_t before = 0, after = 0;  // in `unit`; `before` is the stated or the default value
};

struct Calibration {
  std::vector<Fitted> fitted;
  std::vector<std::string> undetermined;  // parameters that affect no measured row
  // The first was left unchanged because its effect cannot be distinguished from that of the
  // second.
  std::vector<std::pair<std::string, std::string>> indistinguishable;
  TopologyDescription machine;  // with the fitted values
};

// Requires at least one row.
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
