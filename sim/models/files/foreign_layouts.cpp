// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/files/foreign_layouts.h"

#include <algorithm>
#include <span>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"
#include "core/layout/mesh.h"
#include "sim/report/json.h"

namespace reshard::sim {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t bytes = first_character(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string described(const ForeignTensor& tensor) {
  return fmt::format("{}[{}]", text(tensor.dtype), text(tensor.shape));
}

std::string box_field(const Box& box, const Shape& shape) {
  if (box == box_of(shape)) return "";
  std::string ends;
  for (int d = 0; d < box.dims(); ++d)
    ends += fmt::format("{}{}:{}", d == 0 ? "" : ",", box.lo[d], box.hi[d]);
  return fmt::format(R"(, "box": "{}")", ends);
}

using ByName = std::map<std::string_view, const ForeignTensor*>;

ByName by_name(const std::vector<ForeignTensor>& tensors) {
  ByName out;
  for (const ForeignTensor& tensor : tensors) out.emplace(tensor.name, &tensor);
  return out;
}

// One tensor for a name that both sides have; it is an alias only if it is one on both sides.
ForeignTensor same_tensor(const ForeignTensor& a, const ForeignTensor& b) {
  if (a.shape != b.shape || a.dtype != b.dtype)
    throw InputError(
        fmt::format("tensor {}: expected the same shape and dtype on both sides, found {} and {}",
                    reshard::quoted(a.name, 200), described(a), described(b)));
  ForeignTensor out = a;
  if (a.alias_of != b.alias_of) out.alias_of.clear();
  return out;
}

}  // namespace

void check_tensor(const ForeignTensor& tensor, const std::string& place) {
  if (tensor.name.empty() || !is_utf8(tensor.name))
    throw InputError(
        fmt::format("{}: expected names of tensors in UTF-8, found {}", place,
                    tensor.name.empty() ? "an empty one" : reshard::quoted(tensor.name, 200)));
  std::optional<std::int64_t> bytes = size_bytes(tensor.dtype);
  for (std::int64_t extent : tensor.shape)
    if (bytes && extent > 0) bytes = checked_product(*bytes, extent);
  if (!bytes)
    throw InputError(fmt::format("{}: tensor {}: expected at most 2^62 bytes, found {}", place,
                                 reshard::quoted(tensor.name, 200), described(tensor)));
}

std::vector<ForeignTensor> joined(const std::vector<ForeignTensor>& from,
                                  const std::vector<ForeignTensor>& to) {
  const ByName here = by_name(from), there = by_name(to);
  std::vector<ForeignTensor> out, aliases;
  auto put = [&](ForeignTensor tensor) {
    (tensor.alias_of.empty() ? out : aliases).push_back(std::move(tensor));
  };
  for (const ForeignTensor& tensor : from) {
    auto other = there.find(tensor.name);
    put(other == there.end() ? tensor : same_tensor(tensor, *other->second));
  }
  for (const ForeignTensor& tensor : to)
    if (!here.contains(tensor.name)) put(tensor);
  out.insert(out.end(), aliases.begin(), aliases.end());
  return out;
}

std::string tensor_lines(const std::vector<ForeignTensor>& tensors) {
  std::string out;
  for (const ForeignTensor& tensor : tensors) {
    out += fmt::format(R"({{"tensor": {}, )", json_text(tensor.name));
    out += tensor.alias_of.empty() ? fmt::format(R"("shape": [{}], "dtype": "{}"}})",
                                                 text(tensor.shape), text(tensor.dtype))
                                   : fmt::format(R"("alias_of": {}}})", json_text(tensor.alias_of));
    out += '\n';
  }
  return out;
}

std::string layouts_text(const ForeignLayouts& both) {
  return "{\"reshard_check\": 1}\n" + tensor_lines(both.tensors) + both.buffers;
}

std::string layouts_text(const ForeignLayouts& from, const ForeignLayouts& to) {
  return "{\"reshard_check\": 1}\n" + tensor_lines(joined(from.tensors, to.tensors)) +
         from.buffers + to.buffers;
}

void BoxBuffers::add(Rank rank, const ForeignTensor& tensor, const Box& box) {
  std::int64_t count = ++counts_[{tensor.name, rank}];
  std::string name = count == 1 ? tensor.name : fmt::format("{}#{}", tensor.name, count);
  auto [at, is_new] = numbers_.try_emplace({name, box}, buffers_.size());
  if (is_new) buffers_.push_back({&tensor, std::move(name), box, {}});
  buffers_[at->second].ranks.push_back(rank);
  end_rank_ = std::max(end_rank_, std::int64_t{to_int(rank)} + 1);
}

std::string BoxBuffers::lines() const {
  std::string out;
  for (const Buffer& buffer : buffers_) {
    const ForeignTensor& tensor = *buffer.tensor;
    out +=
        fmt::format(R"({{"side": "{}", "buffer": {}, "ranks": "{}", "shape": [{}], )", side_,
                    json_text(buffer.name), ranks_text(buffer.ranks), text(buffer.box.extents()));
    out += fmt::format(R"("dtype": "{}", "parts": [{{"tensor": {}{}}}]}})", text(tensor.dtype),
                       json_text(tensor.name), box_field(buffer.box, tensor.shape));
    out += '\n';
  }
  return out;
}

}  // namespace reshard::sim
