// SPDX-License-Identifier: BSD-3-Clause
// How much compute and communication slow each other, from a pair of runs.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/calibrate/disturbance.h"
#include "sim/machines/presets.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

std::string text_of(std::int64_t compute_alone, std::int64_t communication_alone,
                    std::int64_t compute, std::int64_t communication,
                    const char* transport = "nccl") {
  return fmt::format(R"({{"reshard_overlap": 1, "transport": "{}", "compute_alone_ps": {}, )"
                     R"("communication_alone_ps": {}, "compute_ps": {}, "communication_ps": {}}})",
                     transport, compute_alone, communication_alone, compute, communication);
}

// compute's share, communication's.
std::pair<std::int64_t, std::int64_t> shares(const std::string& text) {
  TopologyDescription machine = find_description("dgx-h100").description;
  std::vector<Fitted> fitted = fit_overlap(machine, parse_overlap(text, "o.json"), "o.json");
  REQUIRE(fitted.size() == 2);
  return {fitted[0].after, fitted[1].after};
}

std::string error_of(const std::string& text) {
  try {
    shares(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the forum's pair of runs gives the shipped figures") {
  auto [compute, communication] = shares(text_of(396'800, 266'900, 584'600, 277'800));
  // (396.8 - (584.6 - 277.8)) / 277.8 and 266.9 / 277.8
  CHECK(compute == 323'974);
  CHECK(communication == 960'763);
  TopologyDescription shipped = find_description("pcie-8x3090").description;
  CHECK(std::abs(*shipped.machine.figure(Figure::ComputeUnderNccl) - compute) < 100);
  CHECK(std::abs(*shipped.machine.figure(Figure::NcclUnderCompute) - communication) < 100);
}

TEST_CASE("who ends first says how the other is counted") {
  // Compute ends first, at half its rate; communication does 0.8 * 200 by then and 100 more.
  CHECK(shares(text_of(100, 260, 200, 300)) ==
        std::pair<std::int64_t, std::int64_t>{500'000, 800'000});
  // Both at once.
  CHECK(shares(text_of(100, 150, 200, 200)) ==
        std::pair<std::int64_t, std::int64_t>{500'000, 750'000});
  // What is no slower, or faster by chance, has all of its rate.
  CHECK(shares(text_of(100, 50, 100, 49)) ==
        std::pair<std::int64_t, std::int64_t>{kRatioOne, kRatioOne});
}

TEST_CASE("copies set figures of their own") {
  TopologyDescription machine = find_description("pcie-8x3090").description;
  std::vector<Fitted> fitted = fit_overlap(
      machine, parse_overlap(text_of(396'800, 133'000, 396'800, 137'000, "copy-engine"), "o"), "o");
  CHECK(fitted[0].name == "compute.under_copy");
  CHECK(fitted[0].after == kRatioOne);
  CHECK(fitted[1].name == "copy.under_compute");
  CHECK(fitted[1].after == 970'803);  // 133 / 137
  CHECK(machine.machine.figure(Figure::CopyUnderCompute) == 970'803);
  CHECK(machine.machine.figure(Figure::NcclUnderCompute) == 960'800);  // as before
}

TEST_CASE("what is no pair of runs is refused") {
  CHECK(is_overlap(text_of(1, 1, 1, 1)));
  CHECK_FALSE(is_overlap("# nThread 1"));
  CHECK(error_of("[\"reshard_overlap\"]") == "o.json: expected one JSON object, found other text");
  CHECK(error_of("{\"reshard_overlap\"") == "o.json: expected one JSON object, found other text");
  CHECK(error_of(R"({"reshard_overlap": 2})") ==
        "o.json: reshard_overlap: expected 1, found another version");
  CHECK(error_of(text_of(1, 1, 1, 1, "ideal")) ==
        "o.json: transport: expected nccl or copy-engine, found 'ideal'");
  CHECK(error_of(text_of(0, 1, 1, 1)) ==
        "o.json: compute_alone_ps: expected a time of at least 1 ps, found 0");
  CHECK(error_of(R"({"reshard_overlap": 1, "transport": "nccl"})") ==
        "o.json: compute_alone_ps: expected a time of at least 1 ps, found no such field");
  // Compute took longer behind the communication than it takes alone.
  CHECK(error_of(text_of(100, 50, 300, 60)) ==
        "o.json: expected times that some share of the rate explains, found -2.333 of "
        "compute.under_nccl");
}

TEST_CASE("times beyond the longest and shares of nothing are refused") {
  CHECK(error_of(text_of(1'000'000'000'000'000'001, 1, 1, 1)) ==
        "o.json: compute_alone_ps: expected a time of at least 1 ps, found 1000000000000000001");
  // All of compute's work was done behind the communication.
  CHECK(error_of(text_of(100, 50, 150, 50)) ==
        "o.json: expected times that some share of the rate explains, found 0.000 of "
        "compute.under_nccl");
  // A machine that says no shares computes and sends at its full rate beside anything.
  TopologyDescription machine = find_description("dgx-h100").description;
  std::vector<Fitted> fitted = fit_overlap(
      machine, parse_overlap(text_of(100, 260, 200, 300, "copy-engine"), "o.json"), "o.json");
  CHECK(fitted[0].before == kRatioOne);
  CHECK(fitted[1].before == kRatioOne);
}
