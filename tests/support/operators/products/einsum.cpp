// SPDX-License-Identifier: BSD-3-Clause
// einsum: sums of products by an equation of letters.
#include <algorithm>
#include <array>

#include "sim/operators/moving/shapes.h"
#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "sim/operators/rearranged.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

constexpr char kFirstDot = '0';  // "..." becomes digits, of which the last dim is '7'

// The parts of an equation such as "b...ij->..."; an ellipsis becomes one digit per dim.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

std::string spelled(const LocalCall& call, std::string part, int rank, int& dots) {
  std::erase(part, ' ');
  std::size_t at = part.find("...");
  if (at != std::string::npos) {
    int count = rank < 0 ? dots : rank - static_cast<int>(part.size()) + 3;
    call.expect(count >= 0 && count <= kMaxDims, "expected an equation that fits its tensors");
    dots = std::max(dots, count);
    std::string digits;
    for (int i = 0; i < count; ++i) digits += static_cast<char>(kFirstDot + kMaxDims - count + i);
    part.replace(at, 3, digits);
  }
  for (char c : part)
    call.expect((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c < '8'),
                "expected an equation of letters, commas and one arrow");
  call.expect(rank < 0 || static_cast<int>(part.size()) == rank,
              "expected a letter in the equation for every dim");
  return part;
}

Equation equation(const LocalCall& call, const std::vector<const Array*>& tensors) {
  std::string text = call.attributes.text("equation", "");
  std::size_t arrow = text.find("->"), start = 0;
  std::string left = text.substr(0, arrow);
  Equation out;
  int dots = 0;
  for (const Array* tensor : tensors) {
    call.expect(start <= left.size(), "expected a part of the equation for every tensor");
    std::size_t comma = std::min(left.find(',', start), left.size());
    out.inputs.push_back(
        spelled(call, left.substr(start, comma - start), tensor->shape.size(), dots));
    start = comma + 1;
  }
  call.expect(start == left.size() + 1, "expected a tensor for every part of the equation");
  if (arrow != std::string::npos) {
    out.output = spelled(call, text.substr(arrow + 2), -1, dots);
    return out;
  }
  // Without an arrow, the output has the dims of the ellipsis, then the letters that occur once, in
  // alphabetical order.
  std::string all;
  for (const std::string& part : out.inputs) all += part;
  std::sort(all.begin(), all.end());
  for (char c : all)
    if ((c < '8' && out.output.find(c) == std::string::npos) ||
        std::count(all.begin(), all.end(), c) == 1)
      out.output += c;
  return out;
}

// The letters with their extents, those of the output first.
struct Letters {
  std::string order;
  std::vector<std::int64_t> extents;
};

Letters letters(const LocalCall& call, const Equation& of,
                const std::vector<const Array*>& tensors) {
  Letters out;
  auto extent_of = [&](char c) -> std::int64_t& {
    std::size_t at = out.order.find(c);
    if (at == std::string::npos) {
      at = out.order.size();
      out.order += c;
      out.extents.push_back(1);
    }
    return out.extents[at];
  };
  for (char c : of.output) {
    call.expect(out.order.find(c) == std::string::npos, "expected every letter once in the output");
    extent_of(c) = 1;
  }
  std::size_t of_output = out.order.size();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (std::size_t d = 0; d < of.inputs[i].size(); ++d) {
      std::int64_t &extent = extent_of(of.inputs[i][d]),
                   own = tensors[i]->shape[static_cast<int>(d)];
      if (extent == 1) extent = own;
      call.expect(own == 1 || own == extent, "expected one size for every letter");
    }
  for (std::size_t i = 0; i < of_output; ++i) {
    bool is_known = false;
    for (const std::string& part : of.inputs)
      is_known = is_known || part.find(out.order[i]) != std::string::npos;
    call.expect(is_known, "expected no letter in the output that no input has");
  }
  return out;
}

// One factor, with its strides by letter.
template <class T>
struct Factor {
  std::vector<T> values;
  std::vector<std::int64_t> strides;
};

// Sums the products over the letters from `letter` on. `at`: the current offset in each factor.
template <class T>
T summed(const std::vector<Factor<T>>& factors, const Letters& of, std::size_t letter,
         std::vector<std::int64_t>& at) {
  if (letter == of.order.size()) {
    T product = 1;
    for (std::size_t f = 0; f < factors.size(); ++f)
      product = times(product, factors[f].values[to_index(at[f])]);
    return product;
  }
  T total = 0;
  std::int64_t extent = of.extents[letter];
  for (std::int64_t i = 0; i < extent; ++i) {
    total = plus(total, summed(factors, of, letter + 1, at));
    for (std::size_t f = 0; f < factors.size(); ++f) at[f] += factors[f].strides[letter];
  }
  for (std::size_t f = 0; f < factors.size(); ++f) at[f] -= extent * factors[f].strides[letter];
  return total;
}

ArrayResults einsum(const LocalCall& call) {
  const auto& tensors = call.full_list(0);
  Equation parts = equation(call, tensors);
  Letters of = letters(call, parts, tensors);
  DType dtype = tensors[0]->dtype;
  for (const Array* tensor : tensors)
    call.expect(tensor->dtype == dtype, "expected tensors of one dtype");
  Shape shape = shape_of(call, {of.extents.begin(), of.extents.begin() + std::ssize(parts.output)});
  computable_count(shape);
  return visit_computing(dtype, [&](auto t) {
    using T = decltype(t);
    std::vector<Factor<T>> factors;
    for (std::size_t f = 0; f < tensors.size(); ++f) {
      DimVector dense = dense_strides(tensors[f]->shape);
      factors.push_back({values<T>(*tensors[f]), std::vector<std::int64_t>(of.order.size(), 0)});
      for (std::size_t d = 0; d < parts.inputs[f].size(); ++d)
        if (tensors[f]->shape[static_cast<int>(d)] != 1)
          factors[f].strides[of.order.find(parts.inputs[f][d])] += dense[static_cast<int>(d)];
    }
    std::vector<T> out;
    DimVector index(shape.size(), 0);
    if (element_count(shape) > 0) do {
        std::vector<std::int64_t> at(factors.size(), 0);
        for (std::size_t f = 0; f < factors.size(); ++f)
          for (int d = 0; d < index.size(); ++d)
            at[f] += index[d] * factors[f].strides[to_index(d)];
        out.push_back(summed(factors, of, parts.output.size(), at));
      } while (next_index(index, [&](int d) { return shape[d]; }));
    return results(Array::of(dtype, shape, std::move(out)));
  });
}

constexpr std::array kEinsumRows{OperatorRow{"einsum", einsum}};

}  // namespace

std::span<const OperatorRow> einsum_rows() { return kEinsumRows; }

}  // namespace reshard::sim
