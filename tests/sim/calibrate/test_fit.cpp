// SPDX-License-Identifier: BSD-3-Clause
// Fits: the figures that produced the rows are recovered; figures that the rows do not determine
// are left alone; rows that were held out are predicted.
#include "sim/calibrate/fit.h"

#include <algorithm>
#include <functional>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "tests/support/measured_tables.h"

namespace reshard::sim {
namespace {

TopologyDescription description(const std::string& gpu, const std::string& nvlink,
                                const std::string& more = "") {
  return parse_topology("reshard-topology 1\nname m\ndevices 8\ngpu " + gpu + "\n" + more +
                            "port nvlink " + nvlink +
                            "\nroute within via nvlink.out nvlink.in latency 0.7us transport "
                            "nvlink\n",
                        "m.topo");
}

std::vector<MeasuredCollective> of(const std::vector<MeasuredCollective>& rows,
                                   const std::function<bool(const MeasuredCollective&)>& wanted) {
  std::vector<MeasuredCollective> out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), wanted);
  return out;
}

// What a machine takes, as if measured.
std::vector<MeasuredCollective> made_by(const TopologyDescription& machine,
                                        std::vector<MeasuredCollective> rows) {
  Topology topology = build_topology(machine, std::nullopt);
  for (MeasuredCollective& row : rows) row.time_ps = predicted_ps(topology, row, "");
  return rows;
}

std::string name_of(Figure which) { return std::string(figure_rows()[to_index(which)].name); }

bool fits(const Calibration& calibration, Figure which) {
  return std::any_of(calibration.fitted.begin(), calibration.fitted.end(),
                     [&](const Fitted& figure) { return figure.name == name_of(which); });
}

bool leaves(const Calibration& calibration, Figure which) {
  return std::count(calibration.undetermined.begin(), calibration.undetermined.end(),
                    name_of(which)) > 0 ||
         std::any_of(calibration.indistinguishable.begin(), calibration.indistinguishable.end(),
                     [&](const auto& pair) { return pair.first == name_of(which); });
}

double mean_error(const TopologyDescription& machine, const std::vector<MeasuredCollective>& rows) {
  return summary_of(errors_on(build_topology(machine, std::nullopt), rows, "")).mean;
}

}  // namespace

TEST_CASE("figures that made the rows are found again") {
  TopologyDescription truth = description(
      "sm80", "300GB/s",
      "figure nccl.launch 7us\nfigure nccl.hop.nvlink 1.1us\nfigure nccl.efficiency 0.8\n"
      "figure nccl.cta 9GB/s\nfigure nccl.simple.hop 1.3\nfigure nccl.simple.launch 0.8\n");
  TopologyDescription base = description("sm80", "300GB/s");
  std::vector<MeasuredCollective> rows = made_by(truth, test::measured_table("8xA100.txt"));
  Calibration found = calibrate(base, rows, "");
  CHECK(mean_error(base, rows) > 5);
  CHECK(mean_error(found.machine, rows) < 0.5);
  for (Figure which : {Figure::Launch, Figure::HopNvlink, Figure::Efficiency}) {
    CAPTURE(figure_rows()[to_index(which)].name);
    REQUIRE(fits(found, which));
    double ratio = static_cast<double>(*found.machine.machine.figure(which)) /
                   static_cast<double>(*truth.machine.figure(which));
    CHECK(ratio == Approx(1).epsilon(0.03));
  }
  CHECK(leaves(found, Figure::HopPcie));
  CHECK(leaves(found, Figure::HopHost));
  CHECK(leaves(found, Figure::NvlsEfficiency));
}

TEST_CASE("fitted on the most ranks, the others are predicted") {
  struct Machine8 {
    std::string file, gpu, nvlink, more;
  };
  Machine8 machine =
      GENERATE(values<Machine8>({{"8xA100.txt", "sm80", "300GB/s", ""},
                                 {"8xH100.txt", "sm90", "450GB/s", "reduces nvlink\n"}}));
  std::vector<MeasuredCollective> all = test::measured_table(machine.file);
  auto eight = of(all, [](const auto&row) { return row.ranks == 8; }),
       others = of(all, [](const auto&row) { return row.ranks != 8; });
  // From a machine of which nothing is known: the other generation's figures.
  TopologyDescription base = description(machine.gpu, machine.nvlink,
                                         machine.more +
                                             "figure nccl.launch 6us\nfigure nccl.hop.nvlink 1us\n"
                                             "figure nccl.efficiency 0.9\n");
  Calibration found = calibrate(base, eight, "");
  double on_others = mean_error(found.machine, others);
  CAPTURE(machine.file, mean_error(base, others), on_others, mean_error(found.machine, eight));
  CHECK(on_others < 10);
  CHECK(on_others < mean_error(base, others));
}

TEST_CASE("two small all-reduces give launch and hop and leave the rest") {
  TopologyDescription base = description("sm90", "450GB/s", "figure nccl.launch 8us\n");
  auto two = of(test::measured_table("8xH100.txt"), [](const auto& row) {
    return row.kind == CollectiveKind::AllReduce && row.bytes == 1024 && row.ranks != 4;
  });
  REQUIRE(two.size() == 2);
  Calibration found = calibrate(base, two, "");
  REQUIRE(found.fitted.size() == 2);
  CHECK((fits(found, Figure::Launch) && fits(found, Figure::HopNvlink)));
  CHECK(leaves(found, Figure::Efficiency));
  CHECK(leaves(found, Figure::SimpleHop));
  CHECK(mean_error(found.machine, two) < 0.1);
}

TEST_CASE("what rows cannot tell apart is named, not guessed") {
  TopologyDescription base = description("sm90", "450GB/s");
  auto one = of(test::measured_table("8xH100.txt"), [](const auto& row) {
    return row.kind == CollectiveKind::AllReduce && row.bytes == 1024 && row.ranks == 8;
  });
  REQUIRE(one.size() == 1);
  Calibration found = calibrate(base, one, "");
  CHECK(found.fitted.size() == 1);
  REQUIRE(found.indistinguishable.size() == 1);
  CHECK(found.indistinguishable[0] ==
        std::pair{name_of(Figure::HopNvlink), name_of(Figure::Launch)});
}

TEST_CASE("figures stay within their bounds") {
  TopologyDescription base = description("sm90", "450GB/s");
  std::vector<MeasuredCollective> absurd{
      {CollectiveKind::AllReduce, 8, 1024, 1, "a:1"},
      {CollectiveKind::AllReduce, 8, std::int64_t{1} << 30, 4'000'000'000'000'000, "a:2"}};
  Calibration found = calibrate(base, absurd, "");
  for (const Fitted& figure : found.fitted) {
    const FigureRow& row = figure_rows()[to_index(*find_figure(figure.name))];
    CHECK((figure.after >= row.least && figure.after <= row.most));
  }
}

TEST_CASE("rates of links are fitted where NVLink does not replace them") {
  auto box = [](const std::string& port, const std::string& uplink) {
    return parse_topology(
        "reshard-topology 1\nname m\ndevices 4\ngpu sm120\nport pcie " + port + "\nshared out0 " +
            uplink + "\nshared in0 " + uplink + "\nshared out1 " + uplink + "\nshared in1 " +
            uplink +
            "\nshared nic 100GB/s\ngroup a 0-1\ngroup b 2-3\n"
            "route between via source.nic latency 3us transport network\n"
            "route a to b via pcie.out out0 in1 pcie.in latency 1us transport pcie class PHB\n"
            "route b to a via pcie.out out1 in0 pcie.in latency 1us transport pcie class PHB\n"
            "route within via pcie.out pcie.in latency 1us transport pcie\n",
        "m.topo");
  };
  std::vector<MeasuredCollective> rows;
  for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllToAll})
    for (std::int32_t ranks : {2, 4})
      for (std::int64_t bytes : {1 << 12, 1 << 20, 1 << 24, 1 << 28})
        rows.push_back({kind, ranks, bytes, 1, "a:1"});
  TopologyDescription truth = box("40GB/s", "25GB/s"), base = box("50GB/s", "38GB/s");
  rows = made_by(truth, rows);
  Calibration found = calibrate(base, rows, "");
  CHECK(mean_error(base, rows) > 8);
  CHECK(mean_error(found.machine, rows) < 2);
  auto named = [&](const std::string& name) {
    return std::any_of(found.fitted.begin(), found.fitted.end(),
                       [&](const Fitted& fitted) { return fitted.name == name; });
  };
  CHECK(named("pcie"));
  CHECK(named("out0, in0, out1, in1"));
  CHECK(found.machine.shared[1].bytes_per_s == found.machine.shared[3].bytes_per_s);
  CHECK(found.machine.shared[4].bytes_per_s == 100'000'000'000);
  CHECK(found.machine.ports[0].in_bytes_per_s == found.machine.ports[0].out_bytes_per_s);
}

TEST_CASE("rows beyond the machine are refused") {
  Topology topology = build_topology(description("sm90", "450GB/s"), std::nullopt);
  CHECK_THROWS_AS(predicted_ps(topology, {CollectiveKind::AllReduce, 9, 8, 1, "a:1"}, ""),
                  InputError);
}

TEST_CASE("errors are relative, nine of ten are at most p90") {
  std::vector<MeasuredCollective> rows(11, {CollectiveKind::AllReduce, 2, 8, 1000, "a:1"});
  std::vector<RowError> errors;
  for (std::size_t i = 0; i < rows.size(); ++i)
    errors.push_back({&rows[i], 1000 + (i % 2 == 0 ? 10 : -10) * static_cast<std::int64_t>(i)});
  ErrorSummary summary = summary_of(errors);
  CHECK(summary.rows == 11);
  CHECK(summary.mean == Approx(5));
  CHECK(summary.p90 == Approx(9));
  CHECK(summary.worst == Approx(10));
  CHECK(summary_of({}).rows == 0);
}

}  // namespace reshard::sim
