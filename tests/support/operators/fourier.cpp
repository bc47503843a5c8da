// SPDX-License-Identifier: BSD-3-Clause
// Fourier transforms along whole dims, computed directly by their definition: slow but obvious.
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "sim/operators/complex_numbers.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using Numbers = std::vector<std::complex<double>>;

struct Transform {
  Shape shape;
  Numbers numbers;

  // Transforms along a dim with the factors e^(sign 2 pi i jk / n); computes only the first
  // `length` numbers.
  void along(int dim, double sign, std::int64_t length) {
    std::int64_t n = shape[dim], inner = 1, outer = 1;
    for (int d = 0; d < dim; ++d) outer *= shape[d];
    for (int d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
    Numbers turns;
    for (std::int64_t k = 0; k < n; ++k)
      turns.push_back(std::polar(
          1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
    Numbers out;
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t j = 0; j < length; ++j)
        for (std::int64_t i = 0; i < inner; ++i) {
          std::complex<double> sum = 0;
          for (std::int64_t k = 0; k < n; ++k)
            sum += numbers[to_index((o * n + k) * inner + i)] * turns[to_index(j * k % n)];
          out.push_back(sum);
        }
    numbers = std::move(out);
    shape[dim] = length;
  }

  // Completes a half spectrum along a dim to all `n` numbers: the other half is its conjugate
  // mirror image.
  void unfold(int dim, std::int64_t n) {
    Transform half = *this;
    std::int64_t given = shape[dim], inner = 1, outer = 1;
    for (int d = 0; d < dim; ++d) outer *= shape[d];
    for (int d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
    shape[dim] = n;
    numbers.assign(to_index(outer * n * inner), 0);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t i = 0; i < inner; ++i) {
          std::int64_t from = 2 * k <= n ? k : n - k;
          if (from >= given) continue;
          std::complex<double> value = half.numbers[to_index((o * given + from) * inner + i)];
          bool own_mirror = 2 * k == n || k == 0;
          if (own_mirror) value = value.real();
          numbers[to_index((o * n + k) * inner + i)] = 2 * k <= n ? value : std::conj(value);
        }
  }
};

Transform read(const Array& input) {
  Transform out{input.shape, {}};
  bool complex = input.dtype == DType::C64;
  std::vector<double> numbers = values<double>(as_pairs(input));
  for (std::size_t i = 0; i < numbers.size(); i += complex ? 2 : 1)
    out.numbers.emplace_back(numbers[i], complex ? numbers[i + 1] : 0.0);
  return out;
}

// normalization 0: no scaling; 1: divide by the square root of the count; 2: divide by the count.
double scale_of(std::int64_t normalization, std::int64_t count) {
  auto n = static_cast<double>(count);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

ArrayResults fourier_transform(const LocalCall& call) {
  const std::string_view name = call.name.substr(0, call.name.find('.'));
  const Array& input = call.tensor(0);
  const OpAttributes& attributes = call.attributes;
  std::vector<int> dims;
  for (std::int64_t dim : attributes.integers("dim"))
    dims.push_back(static_cast<int>(dim < 0 ? dim + input.shape.size() : dim));
  Transform all = read(input);
  bool forward = name == "_fft_r2c" || (name == "_fft_c2c" && attributes.boolean("forward", true));
  std::int64_t count = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    int dim = dims[i];
    bool last = i + 1 == dims.size();
    if (last && name == "_fft_c2r") all.unfold(dim, attributes.integer("last_dim_size"));
    std::int64_t n = all.shape[dim];
    bool halves = last && name == "_fft_r2c" && attributes.boolean("onesided", true);
    all.along(dim, forward ? -1 : 1, halves ? n / 2 + 1 : n);
    count *= n;
  }
  double scale = scale_of(attributes.integer("normalization", 0), count);
  std::vector<double> out;
  for (const std::complex<double>& number : all.numbers) {
    out.push_back(number.real() * scale);
    if (name != "_fft_c2r") out.push_back(number.imag() * scale);
  }
  if (name == "_fft_c2r") return {Array::of(DType::F32, all.shape, out)};
  Shape shape = all.shape;
  shape.push_back(2);
  return {as_complex(Array::of(DType::F32, shape, out))};
}

constexpr std::array kFourierRows{
    OperatorRow{"_fft_c2c.c64", fourier_transform},
    OperatorRow{"_fft_c2r.c64", fourier_transform},
    OperatorRow{"_fft_r2c.c64", fourier_transform},
};

}  // namespace

std::span<const OperatorRow> fourier_rows() { return kFourierRows; }

}  // namespace reshard::sim
