// SPDX-License-Identifier: BSD-3-Clause
// Losses for class targets and for pairs of tensors, and their derivatives.
#include <fmt/format.h>

#include <array>

#include "sim/operators/folds/slices.h"
#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

enum Reduction : std::int64_t { kNone, kMean, kSum };

std::int64_t reduction(const LocalCall& call) {
  std::int64_t out = call.attributes.integer("reduction", kMean);
  call.expect(out >= kNone && out <= kSum, "expected a reduction 0 (none), 1 (mean) or 2 (sum)");
  return out;
}

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

// Reduces one value per target by `kind`. The mean divides by the total weight.
Array reduced(const std::vector<double>& each, std::int64_t kind, double weight, DType dtype,
              const Shape& shape) {
  if (kind == kNone) return Array::of(dtype, shape, each);
  double total = 0;
  for (double x : each) total += x;
  return Array::of(dtype, Shape{}, std::vector<double>{kind == kMean ? total / weight : total});
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
  std::int64_t kind = reduction(call);
  Array total = Array::of(x.dtype, Shape{}, std::vector<double>{kind == kNone ? 0 : weight});
  return results(reduced(each, kind, weight, x.dtype, target.shape), std::move(total));
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
  std::int64_t kind = reduction(call);
  std::vector<double> g = values<double>(broadcast_to(call, grad, target.shape));
  bool is_mean = kind == kMean;
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
  return results(reduced(each, reduction(call), static_cast<double>(dims.count), x.dtype,
                         dims.reduced(false)));
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
  return results(reduced(each, reduction(call), weight, x.dtype, target.shape));
}

// Losses of two tensors, element by element: each with its derivative by the first tensor. The
// third argument is the parameter of the loss.
using Pair = double (*)(double, double, double);
double squared(double x, double y, double) { return (x - y) * (x - y); }
double squared_slope(double x, double y, double) { return 2 * (x - y); }
double absolute(double x, double y, double) { return std::fabs(x - y); }
double huber(double x, double y, double p) {
  double d = std::fabs(x - y);
  return d <= p ? 0.5 * d * d : p * (d - 0.5 * p);
}
double huber_slope(double x, double y, double p) { return smaller(larger(x - y, -p), p); }
double smooth(double x, double y, double p) {
  return p == 0 ? std::fabs(x - y) : huber(x, y, p) / p;
}
double smooth_slope(double x, double y, double p) {
  return p == 0 ? double((x > y) - (x < y)) : huber_slope(x, y, p) / p;
}

double parameter(const LocalCall& call) {
  return call.number(call.attributes.has("delta") ? "delta" : "beta", 1);
}

template <Pair kLoss>
ArrayResults pair_loss(const LocalCall& call) {
  const Array &x = call.tensor(0), &y = call.tensor(1);
  Shape shape = broadcast(call, x.shape, y.shape);
  std::vector<double> a = values<double>(broadcast_to(call, x, shape)),
                      b = values<double>(broadcast_to(call, y, shape));
  double p = parameter(call);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = kLoss(a[i], b[i], p);
  return results(reduced(a, reduction(call), static_cast<double>(a.size()), x.dtype, shape));
}

template <Pair kSlope>
ArrayResults pair_loss_backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &x = call.tensor(1), &y = call.tensor(2);
  Shape shape = broadcast(call, x.shape, y.shape);
  std::vector<double> g = values<double>(broadcast_to(call, grad, shape)),
                      a = values<double>(broadcast_to(call, x, shape)),
                      b = values<double>(broadcast_to(call, y, shape));
  double p = parameter(call), by = reduction(call) == kMean ? static_cast<double>(a.size()) : 1;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = g[i] * kSlope(a[i], b[i], p) / by;
  return results(Array::of(x.dtype, shape, a));
}

constexpr std::array kRows{
    OperatorRow{"nll_loss_forward", nll_loss_forward, 2},
    OperatorRow{"nll_loss2d_forward", nll_loss_forward, 2},
    OperatorRow{"nll_loss", nll_loss},
    OperatorRow{"nll_loss_nd", nll_loss},
    OperatorRow{"nll_loss_backward", nll_loss_backward},
    OperatorRow{"nll_loss2d_backward", nll_loss_backward},
    OperatorRow{"cross_entropy_loss", cross_entropy_loss},
    OperatorRow{"mse_loss", pair_loss<squared>},
    OperatorRow{"l1_loss", pair_loss<absolute>},
    OperatorRow{"huber_loss", pair_loss<huber>},
    OperatorRow{"smooth_l1_loss", pair_loss<smooth>},
    OperatorRow{"mse_loss_backward", pair_loss_backward<squared_slope>},
    OperatorRow{"huber_loss_backward", pair_loss_backward<huber_slope>},
    OperatorRow{"smooth_l1_loss_backward", pair_loss_backward<smooth_slope>},
};

}  // namespace

std::span<const OperatorRow> loss_rows() { return kRows; }

}  // namespace reshard::sim
