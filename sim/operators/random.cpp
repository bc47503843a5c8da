// SPDX-License-Identifier: BSD-3-Clause
// Random operators: distributions over the numbers of a stream (random_stream.h).
#include <array>
#include <cmath>
#include <numbers>

#include "sim/operators/pointwise/pointwise.h"
#include "sim/operators/random_stream.h"

namespace reshard::sim {
namespace {

// Sets every element to draw(number, index).
template <class Draw>
Array drawn(const LocalCall& call, DType dtype, const Shape& shape, Draw draw) {
  Array out = Array::zeros(dtype, shape);
  std::vector<double> numbers(to_index(out.count()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = draw(
        random_number(call.random.seed, static_cast<std::uint64_t>(call.random.offset) + i), i);
  return Array::of(dtype, shape, numbers);
}

// Draws a tensor like the first one; attribute "dtype" overrides its dtype.
template <class Draw>
ArrayResults drawn_like(const LocalCall& call, Draw draw) {
  const Array& like = call.tensor(0);
  return results(drawn(call, call.dtype_or(like.dtype), like.shape,
                       [&](RandomNumber n, std::size_t) { return draw(n); }));
}

// Truncates a number of [0, 1) to the precision of the dtype, so that it is not rounded up to 1.
double below_one(double unit, DType dtype) {
  int bits = dtype == DType::F64 ? 53 : dtype == DType::F16 ? 11 : dtype == DType::BF16 ? 8 : 24;
  return std::ldexp(std::floor(std::ldexp(unit, bits)), -bits);
}

ArrayResults rand_like(const LocalCall& call) {
  DType dtype = call.dtype_or(call.tensor(0).dtype);
  return drawn_like(call, [&](RandomNumber n) { return below_one(n.unit(), dtype); });
}
ArrayResults randn_like(const LocalCall& call) {
  return drawn_like(call, [](RandomNumber n) { return n.normal(); });
}

double integer_between(RandomNumber n, std::int64_t low, std::int64_t high) {
  std::uint64_t first = static_cast<std::uint64_t>(low);
  std::uint64_t above = n.below(static_cast<std::uint64_t>(high) - first);
  return static_cast<double>(static_cast<std::int64_t>(first + above));
}
ArrayResults randint_like(const LocalCall& call) {
  std::int64_t low = call.attributes.integer("low", 0), high = call.attributes.integer("high");
  call.expect(low < high, "expected low below high");
  return drawn_like(call, [=](RandomNumber n) { return integer_between(n, low, high); });
}

// Without `to`, the limit is 2^bits, up to which the dtype represents every integer.
ArrayResults random_from(const LocalCall& call) {
  DType dtype = call.tensor(0).dtype;
  std::int64_t from = call.attributes.integer("from", 0);
  int bits = dtype == DType::F64    ? 53
             : dtype == DType::F32  ? 24
             : dtype == DType::F16  ? 11
             : dtype == DType::BF16 ? 8
             : dtype == DType::Bool ? 1
             : dtype == DType::U8   ? 8
                                    : static_cast<int>(8 * size_bytes(dtype)) - 1;
  std::int64_t to = call.attributes.integer("to", std::int64_t{1} << std::min(bits, 53));
  call.expect(from < to, "expected from below to");
  return drawn_like(call, [=](RandomNumber n) { return integer_between(n, from, to); });
}

ArrayResults uniform(const LocalCall& call) {
  double from = call.number("from", 0), to = call.number("to", 1);
  call.expect(from <= to, "expected from not above to");
  DType dtype = call.tensor(0).dtype;
  return drawn_like(
      call, [=](RandomNumber n) { return from + (to - from) * below_one(n.unit(), dtype); });
}
ArrayResults normal(const LocalCall& call) {
  double mean = call.number("mean", 0), spread = call.number("std", 1);
  return drawn_like(call, [=](RandomNumber n) { return mean + spread * n.normal(); });
}
ArrayResults log_normal(const LocalCall& call) {
  double mean = call.number("mean", 1), spread = call.number("std", 2);
  return drawn_like(call, [=](RandomNumber n) { return std::exp(mean + spread * n.normal()); });
}
ArrayResults exponential(const LocalCall& call) {
  double rate = call.number("lambd", 1);
  return drawn_like(call, [=](RandomNumber n) { return -std::log(n.above_zero()) / rate; });
}
ArrayResults geometric(const LocalCall& call) {
  double p = call.number("p", 0.5);
  call.expect(p > 0 && p < 1, "expected p between 0 and 1");
  return drawn_like(call, [=](RandomNumber n) {
    return std::fmax(1, std::ceil(std::log(n.above_zero()) / std::log1p(-p)));
  });
}
ArrayResults cauchy(const LocalCall& call) {
  double median = call.number("median", 0), sigma = call.number("sigma", 1);
  return drawn_like(call, [=](RandomNumber n) {
    return median + sigma * std::tan(std::numbers::pi * (n.above_zero() - 0.5));
  });
}

// Ones with the probability `p`, or with those in the tensor `each` if it is given.
Array ones_with(const LocalCall& call, const Array& like, const Array* each, double p) {
  std::vector<double> by =
      each ? values<double>(broadcast_to(call, *each, like.shape)) : std::vector<double>{};
  call.expect(p >= 0 && p <= 1, "expected a probability from 0 to 1");
  return drawn(call, like.dtype, like.shape, [&](RandomNumber n, std::size_t i) {
    return n.unit() < (each ? by[i] : p) ? 1.0 : 0.0;
  });
}
ArrayResults bernoulli(const LocalCall& call) {
  const Array &self = call.tensor(0), *other = call.optional_tensor(1);
  const Array* each = call.attributes.has("p") ? nullptr : other ? other : &self;
  return results(ones_with(call, self, each, call.number("p", 0.5)));
}
ArrayResults bernoulli_in_place(const LocalCall& call) {
  return results(ones_with(call, call.tensor(0), call.optional_tensor(1), call.number("p", 0.5)));
}

// Indices along the last dim, drawn by weight; without replacement each at most once. Negative
// weights count as 0, whereas PyTorch refuses them; if no positive weight is left, takes index 0.
ArrayResults multinomial(const LocalCall& call) {
  const Array& weights = call.tensor(0);
  int rank = weights.shape.size();
  std::int64_t count = call.attributes.integer("num_samples");
  bool again = call.attributes.boolean("replacement", false);
  call.expect(rank == 1 || rank == 2, "expected weights of 1 or 2 dims");
  std::int64_t places = weights.shape[rank - 1];
  call.expect(count > 0 && places > 0 && (again || count <= places),
              "expected num_samples from 1 to the number of weights");
  Shape shape = weights.shape;
  shape[rank - 1] = count;
  std::vector<double> all = values<double>(weights), row;
  Array out = drawn(call, DType::I64, shape, [&](RandomNumber n, std::size_t i) {
    if (i % to_index(count) == 0) {
      auto first =
          all.begin() + static_cast<std::ptrdiff_t>(i / to_index(count) * to_index(places));
      row.assign(first, first + places);
      for (double& weight : row) weight = weight > 0 ? weight : 0;
    }
    double total = 0;
    for (double weight : row) total += weight;
    double left = n.unit() * total;
    std::size_t last = 0;
    for (std::size_t at = 0; at < row.size() && left >= 0; ++at) {
      if (row[at] > 0) last = at;
      left -= row[at];
    }
    if (total > 0 && !again) row[last] = 0;
    return static_cast<double>(last);
  });
  return results(std::move(out));
}

// Output and mask; the elements that are kept are scaled up.
ArrayResults native_dropout(const LocalCall& call) {
  const Array& in = call.tensor(0);
  double p = call.number("p", 0.5);
  call.expect(is_real(in.dtype) && p >= 0 && p <= 1, "expected floats and p from 0 to 1");
  if (!call.attributes.boolean("train", true)) p = 0;
  Array mask = drawn(call, DType::Bool, in.shape,
                     [&](RandomNumber n, std::size_t) { return n.unit() >= p ? 1.0 : 0.0; });
  std::vector<double> out = values<double>(in), kept = values<double>(mask);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = p == 1 ? 0 : out[i] * kept[i] / (1 - p);
  return results(Array::of(in.dtype, in.shape, out), std::move(mask));
}
ArrayResults dropout(const LocalCall& call) {
  ArrayResults out = native_dropout(call);
  out.resize(1);
  return out;
}

constexpr Pointwise kDropoutBackward = pointwise<2, 1>(
    Promotion::Common, [](double g, double kept, double scale) { return g * kept * scale; },
    {{{"scale", 1}}});

constexpr std::array kRandomRows{
    OperatorRow{"rand_like", rand_like},
    OperatorRow{"randn_like", randn_like},
    OperatorRow{"randint_like", randint_like},
    OperatorRow{"random", random_from},
    OperatorRow{"uniform", uniform},
    OperatorRow{"normal", normal},
    OperatorRow{"normal_functional", normal},
    OperatorRow{"log_normal", log_normal},
    OperatorRow{"exponential", exponential},
    OperatorRow{"geometric", geometric},
    OperatorRow{"cauchy", cauchy},
    OperatorRow{"bernoulli", bernoulli},
    OperatorRow{"bernoulli_", bernoulli_in_place},
    OperatorRow{"multinomial", multinomial},
    OperatorRow{"native_dropout", native_dropout, 2},
    OperatorRow{"dropout", dropout},
    row("native_dropout_backward", kDropoutBackward),
};

}  // namespace

std::span<const OperatorRow> random_rows() { return kRandomRows; }

}  // namespace reshard::sim
