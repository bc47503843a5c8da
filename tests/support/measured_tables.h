// SPDX-License-Identifier: BSD-3-Clause
// Published measurements, from traces/measurements.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/calibrate/measured.h"

namespace reshard::test {

inline std::vector<sim::MeasuredCollective> measured_table(const std::string& name) {
  std::ifstream file("traces/measurements/" + name);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return sim::parse_measured(text.str(), name).rows;
}

}  // namespace reshard::test
