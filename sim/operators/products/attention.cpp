// SPDX-License-Identifier: BSD-3-Clause
// Scaled dot product attention in all of its forms: one forward and one backward function, with the
// arguments and outputs of each form. Dropout is not supported: its probability must be 0.
#include <array>
#include <cmath>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "sim/operators/products/product.h"
#include "sim/operators/rearranged.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// Queries (batch ..., queries, width) and keys (batch ..., keys, width). Batch dims broadcast.
// Keys and values can have fewer heads (the last batch dim): each then serves a group of query
// heads.
struct Attention {
  Shape batch;
  std::int64_t count = 1, queries = 0, keys = 0, width = 0, value_width = 0;
  double scale = 1;
  bool is_causal = false;
  std::vector<std::int64_t> q_of, k_of, v_of;  // by batch element: index of its matrix
  std::vector<double> q, k, v, bias;           // bias: one per score, or empty
};

Shape batch_dims(const Shape& shape) {
  Shape out;
  for (int d = 0; d + 2 < shape.size(); ++d) out.push_back(shape[d]);
  return out;
}

// Whether the batch dims broadcast: only in the forms that PyTorch decomposes. Its kernels expect
// equal batches, and infer groups from the numbers of heads.
bool broadcasts(const LocalCall& call) {
  return call.row->name == "scaled_dot_product_attention" || call.row->name.ends_with("_math");
}

Shape batch_of(const LocalCall& call, const Shape& q, const Shape& k, const Shape& v) {
  bool grouped = !broadcasts(call) || call.attributes.boolean("enable_gqa", false);
  Shape out(std::max({q.size(), k.size(), v.size()}) - 2, 1);
  for (const Shape* shape : {&q, &k, &v}) {
    Shape own = batch_dims(*shape);
    int missing = out.size() - own.size();
    for (int d = 0; d < own.size(); ++d) {
      std::int64_t& size = out[d + missing];
      bool is_shared = grouped && shape != &q && d == own.size() - 1 && own[d] > 0;
      bool fits = own[d] == size || (is_shared && size % own[d] == 0);
      if (shape == &q || broadcasts(call)) fits = fits || own[d] == 1 || size == 1;
      call.expect(fits, "expected query, key and value of one batch, or groups of heads");
      if (size == 1) size = own[d];
    }
  }
  return out;
}

std::vector<std::int64_t> matrices_of(const Shape& batch, const Shape& shape) {
  Shape own = batch_dims(shape);
  DimVector strides = dense_strides(own);
  int missing = batch.size() - own.size();
  std::vector<std::int64_t> out(to_index(computable_count(batch)), 0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    for (int d = batch.size() - 1; d >= missing; --d) {
      std::int64_t sharing = batch[d] / own[d - missing];
      out[i] += rest % batch[d] / sharing * strides[d - missing];
      rest /= batch[d];
    }
  }
  return out;
}

Attention attention(const LocalCall& call, const Array& q, const Array& k, const Array& v,
                    const Array* bias) {
  const int rank = q.shape.size(), key_rank = k.shape.size(), value_rank = v.shape.size();
  call.expect(rank >= 2 && key_rank >= 2 && value_rank >= 2,
              "expected query, key and value of 2 dims at least");
  call.expect(broadcasts(call) || (key_rank == rank && value_rank == rank),
              "expected query, key and value of one number of dims");
  call.expect(call.number("dropout_p", 0) == 0, "expected dropout_p 0");
  Attention out;
  out.batch = batch_of(call, q.shape, k.shape, v.shape);
  out.count = element_count(out.batch);
  out.queries = q.shape[rank - 2], out.keys = k.shape[key_rank - 2];
  out.width = q.shape[rank - 1], out.value_width = v.shape[value_rank - 1];
  call.expect(k.shape[key_rank - 1] == out.width && v.shape[value_rank - 2] == out.keys,
              "expected query, key and value that fit");
  computable_count({out.count, out.queries, out.keys});
  computable_count({out.count, out.queries, out.value_width});
  out.scale = call.number("scale", 1 / std::sqrt(static_cast<double>(out.width)));
  out.is_causal = call.attributes.boolean("is_causal", false);
  if (out.count > 0) {
    out.q_of = matrices_of(out.batch, q.shape);
    out.k_of = matrices_of(out.batch, k.shape);
    out.v_of = matrices_of(out.batch, v.shape);
  }
  out.q = values<double>(q), out.k = values<double>(k), out.v = values<double>(v);
  if (!bias) return out;
  Shape scores = out.batch;
  scores.push_back(out.queries), scores.push_back(out.keys);
  out.bias = values<double>(broadcast_to(call, *bias, scores));
  if (bias->dtype == DType::Bool)
    for (double& x : out.bias) x = x != 0 ? 0 : -kInfinity;
  return out;
}

// The scores of one batch element, with bias and mask: queries x keys.
std::vector<double> scores_of(const Attention& of, std::int64_t i) {
  std::vector<double> out(to_index(of.queries * of.keys));
  const double *q = of.q.data() + of.q_of[to_index(i)] * of.queries * of.width,
               *k = of.k.data() + of.k_of[to_index(i)] * of.keys * of.width;
  for (std::int64_t a = 0; a < of.queries; ++a)
    for (std::int64_t b = 0; b < of.keys; ++b) {
      double dot = 0;
      for (std::int64_t c = 0; c < of.width; ++c) dot += q[a * of.width + c] * k[b * of.width + c];
      double& score = out[to_index(a * of.keys + b)];
      score = dot * of.scale;
      if (!of.bias.empty()) score += of.bias[to_index((i * of.queries + a) * of.keys + b)];
      if (of.is_causal && b > a) score = -kInfinity;
    }
  return out;
}

struct Attended {
  Array out, log_sum;
  std::vector<double> weights;  // of every score, if requested
};

Attended attend(const Attention& of, DType dtype, bool keeps_weights) {
  Shape shape = of.batch, sums = of.batch;
  shape.push_back(of.queries), shape.push_back(of.value_width), sums.push_back(of.queries);
  std::vector<double> out(to_index(element_count(shape)), 0),
      log_sum(to_index(element_count(sums))), weights;
  for (std::int64_t i = 0; i < of.count; ++i) {
    std::vector<double> scores = scores_of(of, i);
    for (std::int64_t a = 0; a < of.queries; ++a) {
      std::span<double> row(scores.data() + a * of.keys, to_index(of.keys));
      double high = -kInfinity, total = 0;
      for (double x : row) high = larger(high, x);
      bool is_masked = high == -kInfinity;
      for (double& x : row) total += x = is_masked ? 0 : std::exp(x - high);
      for (double& x : row) x = is_masked ? 0 : x / total;
      log_sum[to_index(i * of.queries + a)] = high + std::log(total);
    }
    add_product(scores.data(), of.v.data() + of.v_of[to_index(i)] * of.keys * of.value_width,
                of.queries, of.keys, of.value_width, out.data() + i * of.queries * of.value_width);
    if (keeps_weights) weights.insert(weights.end(), scores.begin(), scores.end());
  }
  return {Array::of(dtype, shape, out),
          Array::of(dtype == DType::F64 ? dtype : DType::F32, sums, log_sum), std::move(weights)};
}

// Gradients of query, key, value and bias.
struct Slopes {
  std::vector<double> q, k, v, bias;
};

Slopes attend_backward(const Attention& of, const std::vector<double>& grad,
                       const std::vector<double>& out, const std::vector<double>& log_sum) {
  Slopes d{std::vector<double>(of.q.size(), 0),
           std::vector<double>(of.k.size(), 0),
           std::vector<double>(of.v.size(), 0),
           {}};
  for (std::int64_t i = 0; i < of.count; ++i) {
    std::vector<double> scores = scores_of(of, i);
    std::int64_t row0 = i * of.queries, query0 = of.q_of[to_index(i)] * of.queries,
                 key0 = of.k_of[to_index(i)] * of.keys, value0 = of.v_of[to_index(i)] * of.keys;
    for (std::int64_t a = 0; a < of.queries; ++a) {
      const double *g = grad.data() + (row0 + a) * of.value_width,
                   *o = out.data() + (row0 + a) * of.value_width;
      double own = 0, least = log_sum[to_index(row0 + a)];
      for (std::int64_t c = 0; c < of.value_width; ++c) own += g[c] * o[c];
      for (std::int64_t b = 0; b < of.keys; ++b) {
        double& score = scores[to_index(a * of.keys + b)];
        double share = score == -kInfinity ? 0 : std::exp(score - least), towards = 0;
        for (std::int64_t c = 0; c < of.value_width; ++c) {
          std::size_t v = to_index((value0 + b) * of.value_width + c);
          towards += g[c] * of.v[v];
          d.v[v] += share * g[c];
        }
        score = share * (towards - own);  // now the derivative of the score
        for (std::int64_t c = 0; c < of.width; ++c) {
          std::size_t q = to_index((query0 + a) * of.width + c),
                      k = to_index((key0 + b) * of.width + c);
          d.q[q] += score * of.k[k] * of.scale;
          d.k[k] += score * of.q[q] * of.scale;
        }
      }
    }
    if (!of.bias.empty()) d.bias.insert(d.bias.end(), scores.begin(), scores.end());
  }
  return d;
}

// Sums the gradient `d` of the scores over the dims in which `like` was broadcast.
Array summed_to(const Array& like, const Shape& scores, const std::vector<double>& d) {
  DimVector strides(scores.size(), 0), dense = dense_strides(like.shape);
  int first = scores.size() - like.shape.size();
  for (int i = 0; i < like.shape.size(); ++i)
    if (like.shape[i] != 1) strides[first + i] = dense[i];
  std::vector<double> out(to_index(like.count()), 0);
  auto from = d.begin();
  for_each_run(scores, strides, 0, [&](std::int64_t start, std::int64_t step, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) out[to_index(start + i * step)] += *from++;
  });
  return Array::of(like.dtype, like.shape, out);
}

// Pads the last dim to `rows` with infinity, or cuts it. Padded rows have weights exp(score - inf),
// which are 0.
Array with_rows(const Array& log_sum, std::int64_t rows) {
  Shape shape = log_sum.shape;
  std::int64_t own = shape[shape.size() - 1], kept = std::min(own, rows);
  shape[shape.size() - 1] = rows;
  std::vector<double> from = values<double>(log_sum),
                      out(to_index(computable_count(shape)), kInfinity);
  for (std::int64_t i = 0; rows > 0 && i < std::ssize(out) / rows; ++i)
    std::copy_n(from.begin() + i * own, kept, out.begin() + i * rows);
  return Array::of(log_sum.dtype, shape, out);
}

Array empty_of(DType dtype) { return Array::zeros(dtype, Shape{0}); }

const Array* mask_of(const LocalCall& call) { return call.optional_tensor(3); }

Attended attended(const LocalCall& call, const Array* bias, bool keeps_weights = false) {
  const Array &q = call.tensor(0), &k = call.tensor(1), &v = call.tensor(2);
  return attend(attention(call, q, k, v, bias), q.dtype, keeps_weights);
}

ArrayResults composite(const LocalCall& call) { return results(attended(call, mask_of(call)).out); }

// Results: output, and weights of shape [batch ..., queries, keys].
ArrayResults math(const LocalCall& call) {
  Attended made = attended(call, mask_of(call), true);
  Shape shape = made.log_sum.shape;
  shape.push_back(call.tensor(1).shape[call.tensor(1).shape.size() - 2]);
  Array weights = Array::of(made.out.dtype, shape, made.weights);
  return results(std::move(made.out), std::move(weights));
}

ArrayResults of_cpu(const LocalCall& call) {
  Attended made = attended(call, mask_of(call));
  return results(std::move(made.out), std::move(made.log_sum));
}

// All zeros without dropout; keys are padded to the blocks of the kernel.
Array debug_mask(const LocalCall& call) {
  const Array& query = call.tensor(0);
  int rank = query.shape.size();
  std::int64_t block = query.shape[rank - 1] > 64 ? 128 : 256,
               keys = call.tensor(1).shape[rank - 2];
  Shape shape = query.shape;
  shape[rank - 1] = keys <= 128 ? 128 : (keys + block - 1) / block * block;
  return Array::zeros(query.dtype, shape);
}

// Results: output, logsumexp, cumulative and maximum lengths (for nested tensors only), state of
// the random generator, debug mask.
ArrayResults flash(const LocalCall& call) {
  Attended made = attended(call, nullptr);
  ArrayResults out(9);
  out[8] = empty_of(made.out.dtype);
  if (call.attributes.boolean("return_debug_mask", false)) out[8] = debug_mask(call);
  out[0] = std::move(made.out), out[1] = std::move(made.log_sum);
  out[6] = Array::zeros(DType::I64, {2});
  return out;
}

ArrayResults efficient(const LocalCall& call) {
  Attended made = attended(call, mask_of(call));
  ArrayResults out(4);
  out[0] = std::move(made.out);
  // The kernel pads logsumexp to blocks of 32 rows.
  std::int64_t rows = made.log_sum.shape[made.log_sum.shape.size() - 1];
  bool wants_sums = call.attributes.boolean("compute_log_sumexp", true);
  out[1] = with_rows(made.log_sum, wants_sums ? (rows + 31) / 32 * 32 : 0);
  return out;
}

ArrayResults fused(const LocalCall& call) {
  Attended made = attended(call, mask_of(call));
  ArrayResults out(9);
  out[0] = std::move(made.out), out[1] = std::move(made.log_sum);
  return out;
}

ArrayResults cudnn(const LocalCall& call) {
  Attended made = attended(call, mask_of(call));
  ArrayResults out(9);
  Shape sums = made.log_sum.shape;
  sums.push_back(1);
  out[0] = std::move(made.out), out[1] = reshaped(made.log_sum, sums);
  if (call.attributes.boolean("return_debug_mask", false)) out[8] = empty_of(out[0]->dtype);
  return out;
}

// Arguments 0 to 3 are gradient, query, key and value. The positions of bias, output and logsumexp
// depend on the form; kBias 0 means no bias.
template <std::size_t kBias, std::size_t kOut, std::size_t kLogSum>
ArrayResults backward(const LocalCall& call) {
  const Array &grad = call.tensor(0), &q = call.tensor(1), &k = call.tensor(2), &v = call.tensor(3);
  const Array* bias = kBias ? call.optional_tensor(kBias) : nullptr;
  Attention of = attention(call, q, k, v, bias);
  const Array &out = call.tensor(kOut), &given = call.tensor(kLogSum);
  bool is_padded = given.shape.size() == q.shape.size() - 1 && of.queries > 0;
  Array log_sum = is_padded ? with_rows(given, of.queries) : given;
  call.expect(grad.shape == out.shape && log_sum.count() == of.count * of.queries &&
                  out.count() == of.count * of.queries * of.value_width,
              "expected gradient, output and logsumexp of the query's shape");
  Slopes d =
      attend_backward(of, values<double>(grad), values<double>(out), values<double>(log_sum));
  ArrayResults made = results(Array::of(q.dtype, q.shape, d.q), Array::of(k.dtype, k.shape, d.k),
                              Array::of(v.dtype, v.shape, d.v));
  if (!call.row->name.starts_with("_scaled_dot_product_efficient") &&
      !call.row->name.starts_with("_scaled_dot_product_fused"))
    return made;
  Shape scores = of.batch;
  scores.push_back(of.queries), scores.push_back(of.keys);
  std::vector<bool> mask =
      call.attributes.booleans("grad_input_mask", {true, true, true, bias != nullptr});
  made.resize(4);
  for (std::size_t i = 0; i < std::min<std::size_t>(mask.size(), 3); ++i)
    if (!mask[i]) made[i].reset();
  if (bias && mask.size() > 3 && mask[3]) made[3] = summed_to(*bias, scores, d.bias);
  return made;
}

constexpr std::array kAttentionRows{
    OperatorRow{"scaled_dot_product_attention", composite},
    OperatorRow{"_scaled_dot_product_attention_math", math},
    OperatorRow{"_scaled_dot_product_flash_attention", flash},
    OperatorRow{"_scaled_dot_product_flash_attention_for_cpu", of_cpu},
    OperatorRow{"_scaled_dot_product_efficient_attention", efficient},
    OperatorRow{"_scaled_dot_product_cudnn_attention", cudnn},
    OperatorRow{"_scaled_dot_product_fused_attention_overrideable", fused},
    OperatorRow{"_scaled_dot_product_fused_attention_overrideable_backward", backward<4, 5, 6>},
    OperatorRow{"_scaled_dot_product_flash_attention_backward", backward<0, 4, 5>},
    OperatorRow{"_scaled_dot_product_flash_attention_for_cpu_backward", backward<6, 4, 5>},
    OperatorRow{"_scaled_dot_product_efficient_attention_backward", backward<4, 5, 6>},
    OperatorRow{"_scaled_dot_product_cudnn_attention_backward", backward<8, 4, 5>},
};

}  // namespace

std::span<const OperatorRow> attention_rows() { return kAttentionRows; }

}  // namespace reshard::sim
