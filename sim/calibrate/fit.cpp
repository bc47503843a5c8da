// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <Eigen/Dense>

#include "core/base/errors.h"
#include "core/traffic/workload.h"
#include "sim/network/engine.h"
#include "sim/transport/nccl_costs.h"

namespace reshard::sim {
namespace {

constexpr int kMaxRounds = 40;
constexpr double kStep = 1e-3;     // of a figure, to see what it changes
constexpr double kLeast = 1e-3;    // a figure that changes less, relative to itself, is not told
constexpr double kAlike = 0.9995;  // cosine of the angle between two figures' effects

// Figures in the order in which they are kept where two are alike: those that mean most first.
constexpr std::array<Figure, 9> kOrder{Figure::Launch,  Figure::HopNvlink,  Figure::HopPcie,
                                       Figure::HopHost, Figure::Efficiency, Figure::NvlsEfficiency,
                                       Figure::CtaRate, Figure::SimpleHop,  Figure::SimpleLaunch};

// What keeps a figure where it was unless rows speak against it: added to the mean error, times the
// square of the logarithm of the change. The Simple protocol's corrections are near 1 on every
// machine seen, and few ranks tell launch and step of it apart.
double prior_of(Figure which) {
  return which == Figure::SimpleHop || which == Figure::SimpleLaunch ? 0.05 : 1e-4;
}

class Fit {
 public:
  Fit(const TopologyDescription& base, const std::vector<MeasuredCollective>& rows,
      const std::string& nccl_version)
      : base_(base), rows_(rows), version_(nccl_version) {
    Topology topology = build_topology(base, std::nullopt);
    int gpu = nccl::gpus_of(topology).compute_capability;
    for (Figure which : kOrder)
      start_.push_back(static_cast<double>(
          base.machine.figure(which).value_or(nccl::default_figure(which, gpu))));
  }

  Calibration run() {
    Calibration out;
    std::vector<int> free = choose(out);
    std::vector<double> best = start_;
    if (!free.empty()) best = improved(best, free);
    out.machine = machine_with(best, free);
    for (int i : free)
      out.fitted.push_back({kOrder[to_index(i)], rounded(start_[to_index(i)]),
                            *out.machine.figure(kOrder[to_index(i)])});
    return out;
  }

 private:
  static std::int64_t rounded(double value) { return static_cast<std::int64_t>(value + 0.5); }

  // To four digits: measurements say no more.
  static std::int64_t in_short(double value) {
    std::int64_t unit = 1;
    while (value >= 10'000 * static_cast<double>(unit)) unit *= 10;
    return rounded(value / static_cast<double>(unit)) * unit;
  }

  Machine machine_with(const std::vector<double>& values, const std::vector<int>& free) const {
    Machine machine = base_.machine;
    for (int i : free) machine.set(kOrder[to_index(i)], in_short(values[to_index(i)]));
    return machine;
  }

  // Relative errors.
  Eigen::VectorXd residuals(const std::vector<double>& values) const {
    TopologyDescription description = base_;
    for (std::size_t i = 0; i < kOrder.size(); ++i)
      description.machine.set(kOrder[i], rounded(values[i]));
    Topology topology = build_topology(description, std::nullopt);
    Eigen::VectorXd out(static_cast<Eigen::Index>(rows_.size()));
    std::vector<RowError> errors = errors_on(topology, rows_, version_);
    for (std::size_t i = 0; i < errors.size(); ++i)
      out[static_cast<Eigen::Index>(i)] = errors[i].error();
    return out;
  }

  // Per figure of `free`, what its logarithm changes.
  Eigen::MatrixXd slopes(const std::vector<double>& values, const std::vector<int>& free,
                         const Eigen::VectorXd& here) const {
    Eigen::MatrixXd out(here.size(), static_cast<Eigen::Index>(free.size()));
    for (std::size_t k = 0; k < free.size(); ++k) {
      std::vector<double> moved = values;
      moved[to_index(free[k])] *= 1 + kStep;
      out.col(static_cast<Eigen::Index>(k)) = (residuals(moved) - here) / kStep;
    }
    return out;
  }

  // Which figures the rows tell.
  std::vector<int> choose(Calibration& out) const {
    std::vector<int> all;
    for (std::size_t i = 0; i < kOrder.size(); ++i) all.push_back(static_cast<int>(i));
    Eigen::MatrixXd effect = slopes(start_, all, residuals(start_));
    std::vector<int> free;
    for (int i : all) {
      auto column = effect.col(i);
      if (column.cwiseAbs().maxCoeff() < kLeast) {
        out.untold.push_back(kOrder[to_index(i)]);
        continue;
      }
      auto like = std::find_if(free.begin(), free.end(), [&](int other) {
        double cosine = column.dot(effect.col(other)) / (column.norm() * effect.col(other).norm());
        return std::abs(cosine) > kAlike;
      });
      if (like != free.end())
        out.alike.push_back({kOrder[to_index(i)], kOrder[to_index(*like)]});
      else if (free.size() < rows_.size())
        free.push_back(i);
      else
        out.untold.push_back(kOrder[to_index(i)]);
    }
    return free;
  }

  // Logarithm of a figure's change so far.
  double moved(const std::vector<double>& values, int i) const {
    return std::log(values[to_index(i)] / start_[to_index(i)]);
  }

  double loss(const Eigen::VectorXd& residuals, const std::vector<double>& values) const {
    double out = residuals.cwiseAbs().mean();
    for (std::size_t i = 0; i < kOrder.size(); ++i) {
      double by = moved(values, static_cast<int>(i));
      out += prior_of(kOrder[i]) * by * by;
    }
    return out;
  }

  void keep_within_bounds(std::vector<double>& values) const {
    for (std::size_t i = 0; i < kOrder.size(); ++i) {
      const FigureRow& row = figure_rows()[to_index(kOrder[i])];
      values[i] =
          std::clamp(values[i], static_cast<double>(row.least), static_cast<double>(row.most));
    }
  }

  std::vector<double> improved(std::vector<double> values, const std::vector<int>& free) const {
    double damping = 1e-2;
    Eigen::VectorXd here = residuals(values);
    for (int round = 0; round < kMaxRounds && damping < 1e6; ++round) {
      Eigen::MatrixXd slope = slopes(values, free, here);
      // Rows that are far off weigh less: least squares so weighted lowers the sum of errors.
      Eigen::VectorXd weight = here.cwiseAbs().cwiseMax(0.02).cwiseInverse();
      Eigen::MatrixXd normal = slope.transpose() * weight.asDiagonal() * slope;
      Eigen::VectorXd down = -slope.transpose() * weight.cwiseProduct(here);
      for (std::size_t k = 0; k < free.size(); ++k) {
        double pull = 2 * static_cast<double>(here.size()) * prior_of(kOrder[to_index(free[k])]);
        auto at = static_cast<Eigen::Index>(k);
        normal(at, at) += pull;
        down[at] -= pull * moved(values, free[k]);
      }
      bool better = false;
      for (; !better && damping < 1e6; damping *= better ? 0.2 : 5) {
        Eigen::MatrixXd damped = normal;
        damped.diagonal() *= 1 + damping;
        Eigen::VectorXd step = damped.ldlt().solve(down).cwiseMax(-0.5).cwiseMin(0.5);
        std::vector<double> next = values;
        for (std::size_t k = 0; k < free.size(); ++k)
          next[to_index(free[k])] *= 1 + step[static_cast<Eigen::Index>(k)];
        keep_within_bounds(next);
        Eigen::VectorXd there = residuals(next);
        better = loss(there, next) < loss(here, values) * (1 - 1e-5);
        if (better) {
          values = std::move(next);
          here = std::move(there);
        }
      }
      if (!better) break;
    }
    return values;
  }

  const TopologyDescription& base_;
  const std::vector<MeasuredCollective>& rows_;
  const std::string& version_;
  std::vector<double> start_;  // by kOrder
};

}  // namespace

std::int64_t predicted_ps(const Topology& topology, const MeasuredCollective& row,
                          const std::string& nccl_version) {
  // The caller keeps the topology.
  auto borrowed = std::shared_ptr<const Topology>(std::shared_ptr<const Topology>(), &topology);
  Carriage carriage(borrowed, {TransportKind::Nccl, nccl_version});
  std::vector<Rank> ranks;
  for (std::int32_t rank = 0; rank < row.ranks; ++rank) ranks.push_back(Rank{rank});
  if (row.ranks > topology.devices())
    throw InputError(row.place + ": expected a topology with a device for each of " +
                     std::to_string(row.ranks) + " ranks, found " +
                     std::to_string(topology.devices()));
  // BareCollective counts one member's part.
  std::int64_t part = row.kind == CollectiveKind::AllReduce
                          ? row.bytes
                          : std::max<std::int64_t>(1, row.bytes / row.ranks);
  Workload workload;
  workload.operations.push_back(
      {BareCollective{row.kind, default_algorithm(row.kind), ranks, part}, 0, {}});
  return run(workload, topology, {.record_spans = false, .carrier = carriage.carrier()}).end_ps;
}

double RowError::error() const {
  return static_cast<double>(predicted_ps - row->time_ps) / static_cast<double>(row->time_ps);
}

std::vector<RowError> errors_on(const Topology& topology,
                                const std::vector<MeasuredCollective>& rows,
                                const std::string& nccl_version) {
  std::vector<RowError> out;
  for (const MeasuredCollective& row : rows)
    out.push_back({&row, predicted_ps(topology, row, nccl_version)});
  return out;
}

ErrorSummary summary_of(const std::vector<RowError>& errors) {
  ErrorSummary out;
  std::vector<double> sizes;
  for (const RowError& error : errors) sizes.push_back(100 * std::abs(error.error()));
  std::sort(sizes.begin(), sizes.end());
  out.rows = sizes.size();
  if (sizes.empty()) return out;
  for (double size : sizes) out.mean += size / static_cast<double>(sizes.size());
  out.p90 = sizes[sizes.size() * 9 / 10];
  out.worst = sizes.back();
  return out;
}

Calibration calibrate(const TopologyDescription& base, const std::vector<MeasuredCollective>& rows,
                      const std::string& nccl_version) {
  RESHARD_CHECK(!rows.empty(), "nothing to fit to");
  return Fit(base, rows, nccl_version).run();
}

}  // namespace reshard::sim
