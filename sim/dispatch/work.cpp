// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/work.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "core/base/integers.h"
#include "core/base/limits.h"
#include "sim/dispatch/values/values.h"

namespace reshard::sim {
namespace {

// What the first rank has of each tensor; no rank has more.
struct Parts {
  std::vector<Shape> in;  // those that are given
  Shape out;
  std::int64_t in_bytes = 0, first_bytes = 0, out_bytes = 0;
};

std::int64_t bytes_of(const Shape& shape, DType dtype) {
  return element_count(shape) * size_bytes(dtype);
}

Parts parts_of(const DispatchedCall& call) {
  const MeshRef& mesh = call.op_line->mesh;
  Parts out;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    if (!call.in[i]) continue;
    TensorSpec wanted{call.in[i]->meta, *call.decision.wanted[i]};
    out.in.push_back(layout_of(wanted, mesh).local_shape(0));
    std::int64_t bytes = bytes_of(out.in.back(), wanted.meta.dtype);
    if (out.in.size() == 1) out.first_bytes = bytes;
    out.in_bytes += bytes;
  }
  for (const std::optional<TensorSpec>& output : call.decision.outputs) {
    if (!output) continue;
    Shape local = layout_of(*output, mesh).local_shape(0);
    if (out.out_bytes == 0) out.out = local;
    out.out_bytes += bytes_of(local, output->meta.dtype);
  }
  return out;
}

std::int64_t last(const Shape& shape) { return shape.size() == 0 ? 1 : shape[shape.size() - 1]; }

// Each element of the output is a sum over the last dim of the left matrix.
Int128 product_operations(const Parts& parts, std::size_t left) {
  return Int128{2} * element_count(parts.out) * last(parts.in[left]);
}

// The product of the sizes of all letters, each once.
Int128 einsum_operations(const DispatchedCall& call, const Parts& parts) {
  std::string equation = call.op_line->attributes.text("equation", "");
  std::erase(equation, ' ');
  std::map<char, std::int64_t> sizes;
  std::size_t tensor = 0;
  int at = 0;
  for (char letter : equation.substr(0, equation.find("->"))) {
    if (letter == '.') return product_operations(parts, 0);  // an ellipsis: close enough
    if (letter == ',') {
      ++tensor;
      at = 0;
    } else if (tensor < parts.in.size() && at < parts.in[tensor].size()) {
      sizes[letter] = parts.in[tensor][at++];
    }
  }
  Int128 out = 2;
  for (const auto& [letter, size] : sizes) out = std::min<Int128>(out * size, kMaxBytes);
  return out;
}

// Query by key, then weights by value; shapes are [..., length, features].
Int128 attention_operations(const Shape& query, const Shape& key) {
  return query.size() < 2 || key.size() < 2
             ? 0
             : Int128{4} * element_count(query) * key[key.size() - 2];
}

// Each element of the output is a sum over a filter.
Int128 convolution_operations(const Shape& output, const Shape& weight) {
  return weight.size() == 0 || weight[0] == 0
             ? 0
             : Int128{2} * element_count(output) * (element_count(weight) / weight[0]);
}

Int128 operations_of(const DispatchedCall& call, const Parts& parts) {
  std::string_view rule = call.op->rule ? call.op->rule->name : std::string_view();
  const std::vector<Shape>& in = parts.in;
  if (rule == "product" && in.size() >= 2) return product_operations(parts, 0);
  if (rule == "product_and_bias" && in.size() >= 3) return product_operations(parts, 1);
  if (rule == "einsum" && !in.empty()) return einsum_operations(call, parts);
  if (rule == "attention" && in.size() >= 3) return attention_operations(in[0], in[1]);
  // Five products instead of two.
  if (rule == "attention_backward" && in.size() >= 4)
    return attention_operations(in[1], in[2]) * 5 / 2;
  bool convolves = rule == "convolution" || (rule == "steps" && call.op->name.starts_with("conv"));
  if (convolves && in.size() >= 2) return convolution_operations(parts.out, in[1]);
  // One convolution for the input, one for the filters.
  if (rule == "convolution_backward" && in.size() >= 3)
    return 2 * convolution_operations(in[0], in[2]);
  return 0;
}

bool is_look_up(const Operator& op) {
  return op.rule && (op.rule->name == "embedding" || op.rule->name == "gather" ||
                     op.rule->name == "index" || op.rule->name == "index_select");
}

}  // namespace

bool is_free_of_work(const Operator& op) {
  constexpr std::array<std::string_view, 12> kNames{
      "alias",        "chunk",        "detach",           "detach_", "narrow", "select.int",
      "slice.Tensor", "split.Tensor", "split_with_sizes", "t",       "t_",     "unbind.int"};
  return op.is_view || std::find(kNames.begin(), kNames.end(), op.name) != kNames.end();
}

Work work_of(const DispatchedCall& call) {
  if (is_free_of_work(*call.op)) return {};
  Parts parts = parts_of(call);
  Work out{operations_of(call, parts), parts.in_bytes + parts.out_bytes};
  if (is_look_up(*call.op))
    out.bytes += std::min<std::int64_t>(0, parts.out_bytes - parts.first_bytes);
  return out;
}

std::int64_t values_effort(const DispatchReport& report) {
  // Values become doubles and are compared one by one: a byte takes as long as many products.
  constexpr Int128 kOfByte = 16;
  Int128 out = 0;
  for (const DispatchedCall& call : report.calls) {
    if (!call.op || !call.sized) continue;
    Work work = work_of(call);
    // On every rank, and once more for the whole.
    out += (work.operations + kOfByte * work.bytes) * 2 * call.op_line->mesh->size();
  }
  return static_cast<std::int64_t>(std::min<Int128>(out, kMaxBytes));
}

std::int64_t estimated_ps(const Work& work, DType dtype, const GpuFigures& gpu) {
  std::int64_t mega = dtype == DType::F64      ? gpu.mega_f64
                      : size_bytes(dtype) <= 2 ? gpu.mega_f16
                                               : gpu.mega_f32;
  constexpr Int128 kMega = 1'000'000;
  std::int64_t products = transfer_ps(work.operations, mega * kMega);
  return std::min(std::max(products, transfer_ps(work.bytes, gpu.memory_bytes_per_s)),
                  kMaxDurationPs);
}

}  // namespace reshard::sim
