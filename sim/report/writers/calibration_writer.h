// SPDX-License-Identifier: BSD-3-Clause
// The report of `calibrate`: a topology compared with measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/calibrate/fit.h"
#include "sim/calibrate/links.h"
#include "sim/report/table.h"

namespace reshard::sim {

struct ErrorsBeforeAfter {
  std::vector<RowError> before, after;  // of the same rows
};
struct CalibrationReport {
  std::string topology;
  bool compared = false;                   // only compared, nothing fitted
  std::optional<Calibration> calibration;  // none: nothing was fitted
  // From matrices of copies: the fitted links, and pairs of GPUs by path class.
  std::vector<Fitted> links;
  std::vector<MeasuredPairs> pairs;
  ErrorsBeforeAfter fitted, held;  // the rows must outlive the report
  std::int64_t passed_over = 0;
  std::vector<std::string> notes;  // on rows that were skipped or changed
};

// "schema": "reshard.calibrate/1". `every_row` adds a row per measurement.
std::string calibration_table(const CalibrationReport& report, bool every_row, std::size_t width);
std::string calibration_json(const CalibrationReport& report);

}  // namespace reshard::sim
