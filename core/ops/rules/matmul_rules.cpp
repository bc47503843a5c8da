// SPDX-License-Identifier: BSD-3-Clause
// Products by their equation: one row per letter, and one per input that the product is linear in.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/errors.h"
#include "core/ops/metas.h"
#include "core/ops/rules/rules.h"

namespace reshard {
namespace {

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

bool is_in_all(const Equation& equation, char letter) {
  return std::all_of(equation.inputs.begin(), equation.inputs.end(),
                     [&](const std::string& input) { return has(input, letter); });
}

// A letter of the output cuts the output and the inputs that have it; a letter that is in both
// inputs but not in the output gives a partial sum. Letters are in alphabetical order: first those
// in all inputs, then the summed ones, then those of the left input, then of the right.
Rows equation_rows(const Equation& equation,
                   std::initializer_list<ReduceOp> ops = {ReduceOp::Sum, ReduceOp::Avg}) {
  std::set<char> letters;
  for (const std::string& input : equation.inputs) letters.insert(input.begin(), input.end());
  std::vector<char> batch, summed, free;
  for (char letter : letters) {
    if (!has(equation.output, letter)) {
      summed.push_back(letter);
    } else {
      (is_in_all(equation, letter) ? batch : free).push_back(letter);
    }
  }
  std::stable_sort(free.begin(), free.end(), [&](char a, char b) {
    return has(equation.inputs[0], a) && !has(equation.inputs[0], b);
  });
  Rows rows;
  auto add = [&](Mark output, auto input_mark) {
    Row row{output};
    for (const std::string& input : equation.inputs) row.push_back(input_mark(input));
    rows.push_back(std::move(row));
  };
  auto cut_letter = [&](char letter) {
    return [letter](const std::string& input) { return cut(input, letter); };
  };
  for (char letter : batch) add(cut(equation.output, letter), cut_letter(letter));
  for (char letter : summed)
    if (is_in_all(equation, letter)) add(Mark::partial(ReduceOp::Sum), cut_letter(letter));
  for (char letter : free) add(cut(equation.output, letter), cut_letter(letter));
  for (ReduceOp op : ops)
    for (const std::string& linear_in : equation.inputs)
      add(Mark::partial(op), [&](const std::string& input) {
        return &input == &linear_in ? Mark::partial(op) : Mark::replicate();
      });
  return rows;
}

// The bias is placed like the output, except along dims that it lacks or broadcasts.
Row with_bias(const Row& row, const Shape& bias, int output_dims) {
  Mark mark = row[0];
  if (mark.kind == Mark::Kind::Shard) {
    int at = mark.dim - (output_dims - bias.size());
    mark = at < 0 || bias[at] == 1 ? Mark::replicate() : Mark::shard(at);
  }
  Row out{row[0], mark};
  out.insert(out.end(), row.begin() + 1, row.end());
  return out;
}

// ---- sizes

Shape output_shape(const Equation& equation, const std::vector<const TensorMeta*>& inputs,
                   std::string_view name) {
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i]->shape;
    if (shape.size() != static_cast<int>(equation.inputs[i].size()))
      throw InputError(fmt::format("{}: expected a tensor of {} dims, found [{}]", name,
                                   equation.inputs[i].size(), text(shape)));
    for (int d = 0; d < shape.size(); ++d) {
      auto [at, is_new] = sizes.try_emplace(equation.inputs[i][to_index(d)], shape[d]);
      if (!is_new && at->second != shape[d])
        throw InputError(fmt::format("{}: [{}] and [{}] do not fit: {} is not {}", name,
                                     text(inputs[0]->shape), text(shape), shape[d], at->second));
    }
  }
  Shape out;
  for (char letter : equation.output) add_dim(out, sizes.at(letter));
  return out;
}

Metas product_metas(const OpSite& site, const Equation& equation, int first = 0) {
  std::vector<const TensorMeta*> factors;
  for (std::size_t i = 0; i < equation.inputs.size(); ++i)
    factors.push_back(&site.meta(first + static_cast<int>(i)));
  return {TensorMeta{output_shape(equation, factors, site.op.name), factors[0]->dtype}};
}

// ---- operators

const Equation kMm{{"mk", "kn"}, "mn"}, kBmm{{"bmk", "bkn"}, "bmn"}, kDot{{"i", "i"}, ""},
    kMv{{"mk", "k"}, "m"};

// mm, bmm, dot, mv; with a bias as the first tensor addmm, baddbmm, addmv.
const Equation& equation_of(const OpSite& site) {
  std::string_view name = site.op.name;
  if (name.find("bmm") != std::string_view::npos) return kBmm;
  if (name.find("mm") != std::string_view::npos) return kMm;
  return name.find("mv") != std::string_view::npos ? kMv : kDot;
}

// PyTorch computes mv as an elementwise product and a sum, which accept no averages.
Rows product(const OpSite& site) {
  if (&equation_of(site) == &kMv) return equation_rows(kMv, {ReduceOp::Sum});
  return equation_rows(equation_of(site));
}
Metas plain_product_metas(const OpSite& site) { return product_metas(site, equation_of(site)); }

Rows product_and_bias(const OpSite& site) {
  const Equation& equation = equation_of(site);
  Rows rows = equation_rows(equation);
  for (Row& row : rows)
    row = with_bias(row, site.shape(0), static_cast<int>(equation.output.size()));
  return rows;
}

// A single scale is replicated. A scale per row or column is placed like its matrix. Scales of
// blocks, in a 1-d list, can only follow a cut of the rows.
std::optional<Mark> scale_mark(const Mark& matrix, const Shape& scale, int inner_dim) {
  if (element_count(scale) == 1) return Mark::replicate();
  if (scale.size() != 1) return matrix;
  if (matrix.kind != Mark::Kind::Shard) return Mark::replicate();
  if (matrix.dim == inner_dim) return std::nullopt;
  return Mark::shard(0);
}

Rows scaled_product(const OpSite& site) {
  Rows rows;
  for (Row row : equation_rows(kMm)) {
    std::optional<Mark> left = scale_mark(row[1], site.shape(2), 1),
                        right = scale_mark(row[2], site.shape(3), 0);
    if (!left || !right) continue;
    row.push_back(*left), row.push_back(*right);
    rows.push_back(std::move(row));
  }
  return rows;
}

Metas scaled_metas(const OpSite& site) {
  if (site.has(4) || site.has(5))
    throw InputError(
        fmt::format("{}: there is no rule for a bias or a scale of the result", site.op.name));
  Metas out = product_metas(site, kMm);
  out[0]->dtype = dtype_or(site.attributes, out[0]->dtype, "out_dtype");
  return out;
}

Metas biased_metas(const OpSite& site) {
  Metas out = product_metas(site, equation_of(site), 1);
  TensorMeta wanted{out[0]->shape, out[0]->dtype};
  if (broadcast_shapes({&wanted, &site.meta(0)}) != wanted.shape)
    throw InputError(fmt::format("{}: [{}] does not broadcast to [{}]", site.op.name,
                                 text(site.shape(0)), text(wanted.shape)));
  return out;
}

// One letter per dim: `tail` for the last dims, batch letters for those before them.
std::string lettered(int dims, const std::string& tail, char first_batch) {
  std::string out;
  for (int i = 0; i < dims - static_cast<int>(tail.size()); ++i)
    out += static_cast<char>(first_batch + i);
  return out + tail;
}

// Batch dims of length 1 that are broadcast get their own letters, which cut nothing.
void name_broadcast(const Shape& shape, const Shape& other, char first, std::string& letters) {
  int shift = other.size() - shape.size();
  for (int d = 0; d < shape.size() - 2; ++d)
    if (shape[d] == 1 && d + shift >= 0 && d + shift < other.size() - 2 && other[d + shift] != 1)
      letters[to_index(d)] = static_cast<char>(first + d);
}

// torch.matmul.
Equation matmul_equation(const OpSite& site) {
  int left = site.shape(0).size(), right = site.shape(1).size();
  if (left == 0 || right == 0) throw InputError("matmul: expected tensors of at least one dim");
  std::string l = left == 1 ? "y" : lettered(left, "xy", 'a'),
              r = right == 1 ? "y" : lettered(right, "yz", 'a');
  std::string batch;
  for (char letter : left >= right ? l : r)
    if (letter < 'x') batch += letter;
  // Batch dims are aligned at their ends.
  auto align = [&](std::string& letters) {
    std::size_t own = to_index(
        std::count_if(letters.begin(), letters.end(), [](char letter) { return letter < 'x'; }));
    letters = batch.substr(batch.size() - own) + letters.substr(own);
  };
  align(l);
  align(r);
  name_broadcast(site.shape(0), site.shape(1), 'A', l);
  name_broadcast(site.shape(1), site.shape(0), 'N', r);
  return {{l, r}, batch + (left > 1 ? "x" : "") + (right > 1 ? "z" : "")};
}

Rows matmul(const OpSite& site) { return equation_rows(matmul_equation(site)); }
Metas matmul_metas(const OpSite& site) { return product_metas(site, matmul_equation(site)); }

Equation linear_equation(const OpSite& site) {
  return {{lettered(site.shape(0).size(), "y", 'a'), site.shape(1).size() == 1 ? "y" : "zy"},
          lettered(site.shape(0).size() - 1, "", 'a') + (site.shape(1).size() == 1 ? "" : "z")};
}

Rows linear(const OpSite& site) {
  Equation equation = linear_equation(site);
  Rows rows = equation_rows(equation);
  if (!site.has(2)) return rows;
  for (Row& row : rows) {
    row = with_bias(row, site.shape(2), static_cast<int>(equation.output.size()));
    std::rotate(row.begin() + 1, row.begin() + 2, row.end());
  }
  return rows;
}

Metas linear_metas(const OpSite& site) { return product_metas(site, linear_equation(site)); }

bool repeats(const std::string& letters) {
  return std::set<char>(letters.begin(), letters.end()).size() < letters.size();
}

Equation written_equation(const OpSite& site) {
  std::string all = site.attributes.text("equation", "");
  std::erase(all, ' ');
  Equation out;
  std::size_t arrow = all.find("->");
  std::string_view left = std::string_view(all).substr(0, std::min(arrow, all.size()));
  for (std::size_t begin = 0; begin <= left.size();) {
    std::size_t end = std::min(left.find(',', begin), left.size());
    out.inputs.emplace_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  if (arrow != std::string::npos) {
    out.output = all.substr(arrow + 2);
  } else {
    std::map<char, int> count;
    for (char letter : left)
      if (letter != ',') ++count[letter];
    for (auto [letter, times] : count)
      if (times == 1) out.output += letter;
  }
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto is_plain = [&](const std::string& letters) {
    return std::all_of(letters.begin(), letters.end(), is_letter);
  };
  bool known = std::all_of(out.output.begin(), out.output.end(), [&](char letter) {
    return std::any_of(out.inputs.begin(), out.inputs.end(),
                       [&](const std::string& input) { return has(input, letter); });
  });
  if (!known || !is_plain(out.output) || repeats(out.output) ||
      !std::all_of(out.inputs.begin(), out.inputs.end(), is_plain) ||
      out.inputs.size() != site.inputs().size())
    throw NotCovered(
        fmt::format("attr equation: expected letters for each tensor, and each letter at most once "
                    "in the output, found \"{}\"",
                    site.attributes.text("equation", "")));
  return out;
}

// A letter that occurs twice in one tensor takes its diagonal, so that tensor must be replicated.
Rows einsum(const OpSite& site) {
  Equation equation = written_equation(site);
  Rows rows = equation_rows(equation);
  std::erase_if(rows, [&](const Row& row) {
    for (std::size_t i = 0; i < equation.inputs.size(); ++i)
      if (repeats(equation.inputs[i]) && row[i + 1] != Mark::replicate()) return true;
    return false;
  });
  return rows;
}
Metas einsum_metas(const OpSite& site) {
  std::vector<const TensorMeta*> inputs = site.inputs();
  return {TensorMeta{output_shape(written_equation(site), inputs, site.op.name), inputs[0]->dtype}};
}

constexpr Rule kMatmulRules[]{
    {"product", product, plain_product_metas},
    {"product_and_bias", product_and_bias, biased_metas},
    {"scaled_product", scaled_product, scaled_metas, "out_dtype"},
    {"matmul", matmul, matmul_metas},
    {"linear", linear, linear_metas},
    {"einsum", einsum, einsum_metas, "equation"},
};

}  // namespace

std::span<const Rule> matmul_rules() { return kMatmulRules; }

}  // namespace reshard
