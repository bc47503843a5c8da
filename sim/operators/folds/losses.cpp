// SPDX-License-Identifier: BSD-3-Clause
// Losses for class targets and for pairs of tensors, and their derivatives.
#include <fmt/core.h>

#include <array>

#include "sim/operators/folds/losses.h"
#include "sim/operators/folds/slices.h"
#include "sim/operators/pointwise/arithmetic.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// Scores of shape (C), (N, C) or (N, C, d1 ...) as one slice of classes per target.
struct Scored {
  Slices<double> scores;
  std::vector<std::int64_t> targets;
  std::vector<double> weights;  // of each slice's target; 0: ignored
  std::vector<double> class_weights;
};

Scored scored(const LocalCall& call, const Array& x, const Array& target, const Array* weight) {
  int rank = x.shape.size();
  call.expect(rank >= 1, "expected scores of 1 dim at least");
  Scored out{slices<double>(x, slice_dim(x.shape, rank == 1 ? 0 : 1)),
             values<std::int64_t>(target),
             {},
             {}};
  std::int64_t classes = out.scores.dims.length,
               ignored = call.attributes.integer("ignore_index", -100);
  call.expect(target.count() == out.scores.dims.count && !is_real(target.dtype),
              "expected a target of integers, one for each score");
  call.expect(!weight || weight->count() == classes, "expected a weight for each class");
  out.class_weights = weight ? values<double>(*weight) : std::vector<double>(to_index(classes), 1);
  for (std::int64_t c : out.targets) {
    if (c != ignored && (c < 0 || c >= classes))
      call.refuse(fmt::format("expected targets from 0 to {}, found {}", classes - 1, c));
    out.weights.push_back(c == ignored ? 0 : out.class_weights[to_index(c)]);
  }
  return out;
}

ArrayResults nll_loss_forward(const LocalCall& call) {
  const Array &x = call.tensor(0), &target = call.tensor(1);
  Scored of = scored(call, x, target, call.optional_tensor(2));
  std::vector<double> each(of.targets.size(), 0);
  double weight = 0;
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (of.targets[i] < 0 || of.weights[i] == 0) continue;
    each[i] = -of.weights[i] * of.scores.slice(static_cast<Int>(i))[to_index(of.targets[i])];
    weight += of.weights[i];
  }
  const Reduction kind = loss_reduction(call.attributes);
  Array total =
      Array::of(x.dtype, Shape{}, std::vector<double>{kind == Reduction::None ? 0 : weight});
  return results(reduced_loss(each, kind, weight, x.dtype, target.shape), std::move(total));
}

ArrayResults nll_loss(const LocalCall& call) {
  ArrayResults out = nll_loss_forward(call);
  out.resize(1);
  return out;
}

// Arguments: gradient, scores, target, weight, total weight.
ArrayResults nll_loss_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &x = call.tensor(1), &target = call.tensor(2);
  Scored of = scored(call, x, target, call.optional_tensor(3));
  const Reduction kind = loss_reduction(call.attributes);
  std::vector<double> g = values<double>(broadcast_to(call, grad, target.shape));
  bool is_mean = kind == Reduction::Mean;
  call.expect(!is_mean || call.tensor(4).count() == 1, "expected a total weight of one element");
  double weight = is_mean ? values<double>(call.tensor(4))[0] : 1;
  std::fill(of.scores.values.begin(), of.scores.values.end(), 0);
  for (std::size_t i = 0; i < g.size(); ++i)
    if (of.weights[i] != 0)
      of.scores.slice(static_cast<Int>(i))[to_index(of.targets[i])] =
          -of.weights[i] * g[i] / weight;
  return results(unsliced(x.dtype, std::move(of.scores)));
}

double log_total(std::span<const double> slice) {
  double high = -kInfinity, total = 0;
  for (double x : slice) high = larger(high, x);
  for (double x : slice) total += std::exp(x - high);
  return high + std::log(total);
}

// Cross entropy with probabilities as targets; no class is ignored.
ArrayResults cross_entropy_of_shares(const LocalCall& call, double smoothing) {
  const Array &x = call.tensor(0), &target = call.tensor(1), *weight = call.optional_tensor(2);
  SliceDims dims = slice_dim(x.shape, x.shape.size() == 1 ? 0 : 1);
  Slices<double> scores = slices<double>(x, dims), shares = slices<double>(target, dims);
  std::vector<double> by = weight ? values<double>(*weight)
                                  : std::vector<double>(to_index(dims.length), 1),
                      each;
  double classes = static_cast<double>(dims.length);
  for (std::int64_t i = 0; i < dims.count; ++i) {
    double least = log_total(scores.slice(i)), loss = 0;
    for (std::size_t c = 0; c < to_index(dims.length); ++c) {
      double share = shares.slice(i)[c] * (1 - smoothing) + smoothing / classes;
      loss -= by[c] * share * (scores.slice(i)[c] - least);
    }
    each.push_back(loss);
  }
  return results(reduced_loss(each, loss_reduction(call.attributes),
                              static_cast<double>(dims.count), x.dtype, dims.reduced(false)));
}

ArrayResults cross_entropy_loss(const LocalCall& call) {
  const Array &x = call.tensor(0), &target = call.tensor(1);
  double smoothing = call.number("label_smoothing", 0);
  if (is_real(target.dtype) && target.shape == x.shape)
    return cross_entropy_of_shares(call, smoothing);
  Scored of = scored(call, x, target, call.optional_tensor(2));
  double classes = static_cast<double>(of.scores.dims.length), weight = 0;
  std::vector<double> each(of.targets.size(), 0);
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (of.weights[i] == 0) continue;
    std::span<const double> slice = of.scores.slice(static_cast<Int>(i));
    double least = log_total(slice), smooth = 0;
    for (std::size_t c = 0; c < slice.size(); ++c)
      smooth += of.class_weights[c] * (least - slice[c]);
    each[i] = (1 - smoothing) * of.weights[i] * (least - slice[to_index(of.targets[i])]);
    if (smoothing > 0) each[i] += smoothing / classes * smooth;
    weight += of.weights[i];
  }
  return results(
      reduced_loss(each, loss_reduction(call.attributes), weight, x.dtype, target.shape));
}

ArrayResults mse_loss(const LocalCall& call) {
  return loss_of_pair(call, [](double x, double y) { return (x - y) * (x - y); });
}

ArrayResults mse_loss_backward(const LocalCall& call) {
  return slope_of_pair(call, [](double x, double y) { return 2 * (x - y); });
}

constexpr std::array kLossesRows{
    OperatorRow{"nll_loss_forward", nll_loss_forward, 2},
    OperatorRow{"nll_loss2d_forward", nll_loss_forward, 2},
    OperatorRow{"nll_loss", nll_loss},
    OperatorRow{"nll_loss_nd", nll_loss},
    OperatorRow{"nll_loss_backward", nll_loss_backward},
    OperatorRow{"nll_loss2d_backward", nll_loss_backward},
    OperatorRow{"cross_entropy_loss", cross_entropy_loss},
    OperatorRow{"mse_loss", mse_loss},
    OperatorRow{"mse_loss_backward", mse_loss_backward},
};

}  // namespace

std::span<const OperatorRow> loss_rows() { return kLossesRows; }

}  // namespace reshard::sim
