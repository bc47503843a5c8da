// SPDX-License-Identifier: BSD-3-Clause
// Calibration: a machine's figures (core/topology/machine.h), fitted so that the nccl transport
// takes what was measured.
//
// Only figures that the rows can tell are fitted: one that changes no prediction by more than one
// part in a thousand is left as it is, and so is one of two that change all predictions alike; the
// result names both. The fit is of relative errors, damped least squares (Levenberg, Marquardt) in
// the logarithms of the figures, weighted so that the mean absolute error falls and a stray row
// counts little; figures stay within their bounds, and near what they
// were where rows say little about them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/topology/topology_text.h"
#include "sim/calibrate/nccl_tests.h"
#include "sim/transport/transport.h"

namespace reshard::sim {

// What the nccl transport takes for a row. Throws InputError where a rank has no device.
std::int64_t predicted_ps(const Topology& topology, const MeasuredCollective& row,
                          const std::string& nccl_version);

struct FittedFigure {
  Figure which;
  std::int64_t before = 0, after = 0;  // in its unit; `before`: stated or concluded
};

struct Calibration {
  std::vector<FittedFigure> fitted;
  std::vector<Figure> untold;  // change nothing that was measured
  // The first was left as it was: it cannot be told from the second.
  std::vector<std::pair<Figure, Figure>> alike;
  Machine machine;  // with the fitted figures
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
