// SPDX-License-Identifier: BSD-3-Clause
// Times of collectives, compared with published tables.
#include "sim/transport/nccl/nccl_costs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "core/topology/topology_text.h"
#include "sim/calibrate/measured.h"
#include "tests/support/measured_tables.h"
#include "tests/support/unit_sizes.h"

namespace reshard::sim::nccl::costs_tests {

using reshard::test::kMiB;

namespace {

Topology machine(const std::string& lines) {
  return build_topology(parse_topology("reshard-topology 1\nname m\n" + lines, "m.topo"),
                        std::nullopt);
}
const std::string kSwitch = "route within via nvlink.out nvlink.in latency 0 transport nvlink\n";

Topology a100() { return machine("devices 8\ngpu sm80\nport nvlink 300GB/s\n" + kSwitch); }
Topology h100() {
  return machine("devices 8\ngpu sm90\nreduces nvlink\nport nvlink 450GB/s\n" + kSwitch);
}
Topology four_a100() {
  return machine(
      "devices 4\ngpu sm80\nport nvlink 300GB/s\n"
      "route within via nvlink.out nvlink.in latency 0 cap 100GB/s transport nvlink\n");
}

Costs costs_of(const Topology& topology, int ranks) {
  std::vector<Rank> all;
  for (int r = 0; r < ranks; ++r) all.push_back(Rank{r});
  return Costs(constants_of(""), parameters_of(topology), communicator_of(topology, all));
}

double predicted_us(const Topology& topology, const MeasuredCollective& row) {
  Costs costs = costs_of(topology, row.ranks);
  if (row.kind == CollectiveKind::AllToAll) return costs.all_to_all_us(row.bytes / row.ranks);
  Function function = row.kind == CollectiveKind::AllReduce   ? Function::AllReduce
                      : row.kind == CollectiveKind::AllGather ? Function::AllGather
                                                              : Function::ReduceScatter;
  return costs.time_us(function, costs.choose(function, row.bytes), row.bytes);
}

struct Errors {
  double mean, p90;
  std::size_t rows;
};

// Percent.
Errors errors_of(const Topology& topology, const std::string& name) {
  std::vector<double> errors;
  double sum = 0;
  for (const MeasuredCollective& row : test::measured_table(name)) {
    double us = static_cast<double>(row.time_ps) / 1e6;
    errors.push_back(100 * std::abs(predicted_us(topology, row) / us - 1));
    sum += errors.back();
  }
  std::sort(errors.begin(), errors.end());
  return {sum / static_cast<double>(errors.size()), errors[errors.size() * 9 / 10], errors.size()};
}

}  // namespace

TEST_CASE("Collectives take what was measured on the machines that the form was fitted to") {
  Errors on_a100 = errors_of(a100(), "8xA100.txt"), on_h100 = errors_of(h100(), "8xH100.txt");
  CAPTURE(on_a100.mean, on_a100.p90, on_h100.mean, on_h100.p90);
  CHECK((on_a100.rows == 132 && on_a100.mean < 5.8 && on_a100.p90 < 10));
  CHECK((on_h100.rows == 132 && on_h100.mean < 5.1 && on_h100.p90 < 10));
}

TEST_CASE("Nothing is fitted to a machine whose pairs have links of their own") {
  Errors on_pairs = errors_of(four_a100(), "4xA100.txt");
  CAPTURE(on_pairs.mean, on_pairs.p90);
  CHECK((on_pairs.rows == 52 && on_pairs.mean < 8.5 && on_pairs.p90 < 19));
}

TEST_CASE("A ring's form, term by term") {
  Costs costs = costs_of(a100(), 8);
  auto time = [&](Protocol protocol, std::int64_t bytes) {
    return costs.time_us(Function::AllGather, {Algorithm::Ring, protocol, 0}, bytes);
  };
  double b = 9.03, h = 0.893, rate = 0.921 * 240e3;  // bytes per us
  CHECK(time(Protocol::LL, 0) == Approx(b + 7 * h));
  double part = 1 << 20;
  CHECK(time(Protocol::LL, 8 << 20) ==
        Approx(1.31 * b +
               7 * std::sqrt(std::pow(1.31 * h, 2) + std::pow(part / (0.92 * 87.7e3), 2))));
  double x = part / rate;
  CHECK(time(Protocol::LL128, 8 << 20) == Approx(2.81 * b + 7 * (0.63 * h + x / 0.755)));
  CHECK(time(Protocol::Simple, 8 << 20) ==
        Approx(2.88 * 1.01 * b + 7 * std::sqrt(std::pow(8.85 * 1.05 * h, 2) + x * x) +
               0.34 * part / 221e3 + 0.29 * part / rate));
  // Half way between 4 and 8 KiB a rank.
  CHECK(time(Protocol::LL, 8 * 6144) ==
        Approx(1.155 * b +
               7 * std::sqrt(std::pow(1.155 * h, 2) + std::pow(6144 / (0.92 * 87.7e3), 2))));
}

TEST_CASE("Switches that reduce send one part more than there are ranks") {
  Costs costs = costs_of(h100(), 8);
  double rate = 0.832 * 360e3 * 8 / 9, bytes = 64 << 20;
  CHECK(costs.time_us(Function::AllReduce, {Algorithm::Nvls, Protocol::Simple, 0}, 64 << 20) ==
        Approx(36.8 * 0.786 + bytes / rate + 0.37 * (32 << 20) / rate));
}

TEST_CASE("Thread blocks of a message, by NCCL's rules") {
  auto channels = [](int ranks, std::int64_t bytes) {
    return costs_of(h100(), ranks).channels_per_message(bytes, false);
  };
  CHECK(channels(2, 64 * kMiB) == 16);
  CHECK(channels(4, 64 * kMiB) == 8);
  CHECK(channels(8, 64 * kMiB) == 4);
  for (int ranks : {2, 4, 8}) {
    CHECK(channels(ranks, 256 * kMiB) == 16);
    CHECK(channels(ranks, 1024 * kMiB) == 32);
    CHECK(channels(ranks, 1) == 1);
  }
}

TEST_CASE("A message's latency grows between 4 and 64 KiB") {
  Costs costs = costs_of(h100(), 8);
  CHECK(costs.message_latency_us(0, false) == Approx(4.70 + 1.3 + 3 * 0.69));
  CHECK(costs.message_latency_us(4096, false) == Approx(4.70 + 1.3 + 3 * 0.69));
  CHECK(costs.message_latency_us(65536, false) == Approx(4.70 + 7.8));
  CHECK(costs.message_latency_us(1 << 30, false) == Approx(4.70 + 7.8));
  double low = 4.70 + 1.3 + 3 * 0.69, high = 4.70 + 7.8;
  CHECK(costs.message_latency_us(16384, false) == Approx((low + high) / 2));
}

TEST_CASE("A machine's own figures rule over those of its class of GPU") {
  Topology own = machine(
      "devices 8\ngpu sm90\nfigure nccl.launch 6us\nfigure nccl.hop.nvlink 0.5us\n"
      "figure nccl.efficiency 0.9\nport nvlink 450GB/s\n" +
      kSwitch);
  Costs costs = costs_of(own, 8);
  CHECK(costs.time_us(Function::AllGather, {Algorithm::Ring, Protocol::LL, 0}, 0) ==
        Approx(6 + 7 * 0.5));
  CHECK(costs.ring_gb_per_s() == Approx(0.9 * 360));
}

}  // namespace reshard::sim::nccl::costs_tests
