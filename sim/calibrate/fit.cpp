// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include <Eigen/Dense>

#include "core/base/errors.h"
#include "core/traffic/workload.h"
#include "sim/network/engine.h"
#include "sim/transport/nccl/nccl_costs.h"

namespace reshard::sim {
namespace {

constexpr int kMaxRounds = 40;
constexpr double kStep = 1e-3;     // relative step of a parameter for numerical derivatives
constexpr double kLeast = 1e-3;    // parameters with smaller effects, per relative change, are not
                                   // fitted
constexpr double kAlike = 0.9995;  // cosine of the angle between two parameters' effects

std::int64_t rounded(double value) { return static_cast<std::int64_t>(value + 0.5); }

// Rounded to four digits, the most that measurements justify.
double in_short(double value) {
  std::int64_t unit = 1;
  while (value >= 10'000 * static_cast<double>(unit)) unit *= 10;
  return static_cast<double>(rounded(value / static_cast<double>(unit)) * unit);
}

struct Parameter {
  std::string name, meaning;
  FigureUnit unit;
  double start, least, most;
  // Strength of the pull towards the start value: this times the squared logarithm of the change is
  // added to the mean error.
  double prior;
  std::function<void(TopologyDescription&, std::int64_t)> set;
};

// If two figures have the same effect, the first in this order is fitted: the most meaningful come
// first. The Simple protocol's corrections were near 1 on every machine measured, and with few
// ranks its launch and hop corrections cannot be distinguished.
void add_figures(const TopologyDescription& base, std::vector<Parameter>& out) {
  constexpr double kFree = 1e-4, kHeld = 0.05;
  constexpr std::array<std::pair<Figure, double>, 9> kOrder{{{Figure::Launch, kFree},
                                                             {Figure::HopNvlink, kFree},
                                                             {Figure::HopPcie, kFree},
                                                             {Figure::HopHost, kFree},
                                                             {Figure::Efficiency, kFree},
                                                             {Figure::NvlsEfficiency, kFree},
                                                             {Figure::CtaRate, kFree},
                                                             {Figure::SimpleHop, kHeld},
                                                             {Figure::SimpleLaunch, kHeld}}};
  int gpu = nccl::gpus_of(build_topology(base, std::nullopt)).compute_capability;
  for (auto [figure, prior] : kOrder) {
    const FigureRow& row = figure_rows()[to_index(figure)];
    std::int64_t start = base.machine.figure(figure).value_or(nccl::default_figure(figure, gpu));
    out.push_back({std::string(row.name), std::string(row.meaning), row.unit,
                   static_cast<double>(start), static_cast<double>(row.least),
                   static_cast<double>(row.most), prior,
                   [figure = figure](TopologyDescription& machine, std::int64_t value) {
                     machine.machine.set(figure, value);
                   }});
  }
}

// Links within a node other than NVLink, grouped by rate. The fitted rate stays within a quarter
// and four times the stated rate, which may be half or twice what sends reach.
void add_links(const TopologyDescription& base, std::vector<Parameter>& out) {
  struct Links {
    std::vector<std::int32_t> ports, shared;
    std::string names;
  };
  std::map<std::int64_t, Links> by_rate;
  std::vector<bool> port(base.ports.size(), false), shared(base.shared.size(), false);
  for (const RouteLine& route : base.routes) {
    PathClass path = route.rule.path_class();
    if (path == PathClass::NVL || path == PathClass::NET) continue;
    for (const Hop& hop : route.rule.hops) {
      if (hop.kind == Hop::Kind::SourceOut) port[to_index(hop.index)] = true;
      if (hop.kind == Hop::Kind::SourceNodeShared) shared[to_index(hop.index)] = true;
    }
  }
  auto name = [](Links& links, const std::string& of) {
    links.names += (links.names.empty() ? "" : ", ") + of;
  };
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(port.size()); ++i)
    if (port[to_index(i)]) {
      Links& links = by_rate[base.ports[i].out_bytes_per_s];
      links.ports.push_back(i);
      name(links, base.ports[i].name);
    }
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(shared.size()); ++i)
    if (shared[to_index(i)]) {
      Links& links = by_rate[base.shared[i].bytes_per_s];
      links.shared.push_back(i);
      name(links, base.shared[i].name);
    }
  for (const auto& [rate, links] : by_rate)
    out.push_back({links.names, "rate of these links", FigureUnit::Rate, static_cast<double>(rate),
                   static_cast<double>(rate) / 4, static_cast<double>(rate) * 4, 1e-3,
                   [links = links](TopologyDescription& machine, std::int64_t value) {
                     for (std::int32_t i : links.ports)
                       machine.ports[i].out_bytes_per_s = machine.ports[i].in_bytes_per_s = value;
                     for (std::int32_t i : links.shared) machine.shared[i].bytes_per_s = value;
                   }});
}

class Fit {
 public:
  Fit(const TopologyDescription& base, const std::vector<MeasuredCollective>& rows,
      const std::string& nccl_version)
      : base_(base), rows_(rows), version_(nccl_version) {
    add_figures(base, parameters_);
    add_links(base, parameters_);
    for (const Parameter& parameter : parameters_) start_.push_back(parameter.start);
  }

  Calibration run() {
    Calibration out;
    std::vector<int> free = choose(out);
    std::vector<double> best = start_;
    if (!free.empty()) best = improved(best, free);
    out.machine = base_;
    for (int i : free) {
      const Parameter& parameter = parameters_[to_index(i)];
      std::int64_t value = rounded(in_short(best[to_index(i)]));
      parameter.set(out.machine, value);
      out.fitted.push_back(
          {parameter.name, parameter.meaning, parameter.unit, rounded(parameter.start), value});
    }
    return out;
  }

 private:
  // The relative errors of all rows.
  Eigen::VectorXd residuals(const std::vector<double>& values) const {
    TopologyDescription description = base_;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      parameters_[i].set(description, rounded(values[i]));
    Topology topology = build_topology(description, std::nullopt);
    Eigen::VectorXd out(static_cast<Eigen::Index>(rows_.size()));
    std::vector<RowError> errors = errors_on(topology, rows_, version_);
    for (std::size_t i = 0; i < errors.size(); ++i)
      out[static_cast<Eigen::Index>(i)] = errors[i].error();
    return out;
  }

  // By column, for each parameter of `free`: derivative of the errors by the logarithm of the
  // parameter.
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

  // The parameters that the rows determine.
  std::vector<int> choose(Calibration& out) const {
    std::vector<int> all(parameters_.size()), free;
    std::iota(all.begin(), all.end(), 0);
    Eigen::MatrixXd effect = slopes(start_, all, residuals(start_));
    for (int i : all) {
      const std::string& name = parameters_[to_index(i)].name;
      auto column = effect.col(i);
      if (column.cwiseAbs().maxCoeff() < kLeast) {
        out.undetermined.push_back(name);
        continue;
      }
      auto like = std::find_if(free.begin(), free.end(), [&](int other) {
        double cosine = column.dot(effect.col(other)) / (column.norm() * effect.col(other).norm());
        return std::abs(cosine) > kAlike;
      });
      if (like != free.end())
        out.indistinguishable.push_back({name, parameters_[to_index(*like)].name});
      else if (free.size() < rows_.size())
        free.push_back(i);
      else
        out.undetermined.push_back(name);
    }
    return free;
  }

  // Logarithm of a parameter's change so far.
  double moved(const std::vector<double>& values, int i) const {
    return std::log(values[to_index(i)] / start_[to_index(i)]);
  }

  double loss(const Eigen::VectorXd& residuals, const std::vector<double>& values) const {
    double out = residuals.cwiseAbs().mean();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      double by = moved(values, static_cast<int>(i));
      out += parameters_[i].prior * by * by;
    }
    return out;
  }

  void keep_within_bounds(std::vector<double>& values) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      values[i] = std::clamp(values[i], parameters_[i].least, parameters_[i].most);
  }

  std::vector<double> improved(std::vector<double> values, const std::vector<int>& free) const {
    double damping = 1e-2;
    Eigen::VectorXd here = residuals(values);
    for (int round = 0; round < kMaxRounds && damping < 1e6; ++round) {
      Eigen::MatrixXd slope = slopes(values, free, here);
      // Rows with large errors weigh less: least squares weighted this way lowers the sum of
      // absolute errors.
      Eigen::VectorXd weight = here.cwiseAbs().cwiseMax(0.02).cwiseInverse();
      Eigen::MatrixXd normal = slope.transpose() * weight.asDiagonal() * slope;
      Eigen::VectorXd down = -slope.transpose() * weight.cwiseProduct(here);
      for (std::size_t k = 0; k < free.size(); ++k) {
        double pull = 2 * static_cast<double>(here.size()) * parameters_[to_index(free[k])].prior;
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
  std::vector<Parameter> parameters_;
  std::vector<double> start_;  // by parameter
};

}  // namespace

std::int64_t predicted_ps(const Topology& topology, const MeasuredCollective& row,
                          const std::string& nccl_version) {
  // The caller owns the topology.
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
  return run(workload, topology, {.record_spans = false, .carriers = {carriage.carrier()}}).end_ps;
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
  RESHARD_CHECK(!rows.empty(), "no rows to fit");
  return Fit(base, rows, nccl_version).run();
}

}  // namespace reshard::sim
