// SPDX-License-Identifier: BSD-3-Clause
#include "core/stored/stored.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard {
namespace {

// At most so many contiguous runs are compared one by one to find parts that overlap.
constexpr std::int64_t kMostRuns = std::int64_t{1} << 22;
// About 1 GB.
constexpr std::size_t kMostParts = std::size_t{1} << 22;

void check_size(const Shape& shape, DType dtype, std::string_view what) {
  std::optional<std::int64_t> bytes = size_bytes(dtype);
  for (std::int64_t extent : shape) {
    if (extent < 0)
      throw InputError(
          fmt::format("{}: expected extents of at least 0, found [{}]", what, text(shape)));
    if (bytes) bytes = checked_product(*bytes, extent);
  }
  if (!bytes)
    throw InputError(fmt::format("{}: expected at most 2^62 bytes, found {}[{}]", what, text(dtype),
                                 text(shape)));
}

void sort_by_offset(std::vector<StoredPart>& parts) {
  auto is_before = [](const StoredPart& a, const StoredPart& b) { return a.offset < b.offset; };
  if (!std::is_sorted(parts.begin(), parts.end(), is_before))
    std::stable_sort(parts.begin(), parts.end(), is_before);
}

}  // namespace

ModelTensorId ModelTensors::put(ModelTensor tensor) {
  auto id = id_of<ModelTensorId>(list_.size());
  if (!by_name_.emplace(tensor.name, id).second)
    throw InputError(
        fmt::format("tensor: expected each name once, found {} again", quoted(tensor.name, 200)));
  list_.push_back(std::move(tensor));
  return id;
}

ModelTensorId ModelTensors::add(std::string name, Shape shape, DType dtype) {
  check_size(shape, dtype, fmt::format("tensor {}", quoted(name, 200)));
  return put({std::move(name), shape, dtype, id_of<ModelTensorId>(list_.size())});
}

ModelTensorId ModelTensors::add_alias(std::string name, std::string_view of) {
  ModelTensor tensor = list_[at(of, "alias_of")];
  tensor.name = std::move(name);
  return put(std::move(tensor));
}

ModelTensorId ModelTensors::add_scales(std::string name, ScalesOf scales, DType dtype) {
  const ModelTensor& of = list_[scales.tensor];
  Shape shape = of.shape;
  bool fits = scales.block.size() == shape.size();
  for (int d = 0; fits && d < shape.size(); ++d) {
    fits = scales.block[d] >= 1;
    if (fits) shape[d] = ceil_div(shape[d], scales.block[d]);
  }
  if (!fits)
    throw InputError(
        fmt::format("block: expected an extent of at least 1 for each dim of {}[{}], "
                    "found [{}]",
                    of.name, text(of.shape), text(scales.block)));
  check_size(shape, dtype, fmt::format("tensor {}", quoted(name, 200)));
  return put(
      {std::move(name), shape, dtype, id_of<ModelTensorId>(list_.size()), std::move(scales)});
}

const ModelTensor* ModelTensors::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &list_[found->second];
}

ModelTensorId ModelTensors::at(std::string_view name, std::string_view field) const {
  auto found = by_name_.find(std::string(name));
  if (found == by_name_.end())
    throw InputError(fmt::format("{}: expected a tensor of an earlier line, found {}", field,
                                 quoted(name, 200)));
  return found->second;
}

StoredBufferId Stored::add(StoredBuffer buffer) {
  try {
    check(buffer);
  } catch (const InputError& error) {
    throw error.in(
        fmt::format("buffer {} of rank {}", quoted(buffer.name, 200), to_int(buffer.rank)));
  }
  auto id = id_of<StoredBufferId>(buffers_.size());
  size_ += 1 + buffer.parts.size();
  if (size_ > kMostParts)
    throw InputError("expected at most 2^22 buffers and parts of one side, found more");
  sort_by_offset(buffer.parts);
  const bool is_many = buffer.parts.size() > 1;
  if (is_many) buffer.reach.reserve(buffer.parts.size());
  for (std::size_t i = 0; i < buffer.parts.size(); ++i) {
    if (is_many) {
      std::int64_t end = buffer.parts[i].view().end();
      buffer.reach.push_back(i == 0 ? end : std::max(buffer.reach.back(), end));
    }
    keys_.push_back(key_of(buffer.rank, (*tensors_)[buffer.parts[i].tensor].same_as));
    parts_.push_back({id, static_cast<std::int32_t>(i)});
  }
  sorted_ = false;
  auto known = by_name_.find(buffer.name);
  if (known == by_name_.end()) known = by_name_.try_emplace(std::string(buffer.name)).first;
  buffer.name = known->first;
  OfName& of_name = known->second;
  of_name.insert(std::upper_bound(of_name.begin(), of_name.end(), std::pair(buffer.rank, id)),
                 {buffer.rank, id});
  buffers_.push_back(std::move(buffer));
  return id;
}

void Stored::check(const StoredBuffer& buffer) const {
  if (find(buffer.rank, buffer.name))
    throw InputError("expected each name once on a rank, found it again");
  check_size(buffer.shape, buffer.dtype, "shape");
  for (const StoredPart& part : buffer.parts) check_part(buffer, part);
  if (buffer.converts) check_conversion(buffer);
  check_disjoint(buffer);
}

void Stored::check_part(const StoredBuffer& buffer, const StoredPart& part) const {
  const ModelTensor& tensor = (*tensors_)[part.tensor];
  auto what = [&] { return element_text(tensor, part.box); };
  if (part.box.dims() != tensor.shape.size() || part.box.empty() ||
      !contains(box_of(tensor.shape), part.box))
    throw InputError(
        fmt::format("expected parts of {}[{}], found {}", tensor.name, text(tensor.shape), what()));
  if (tensor.dtype != buffer.dtype && !buffer.converts)
    throw InputError(fmt::format("expected parts of {} as the buffer has, found {} of {}",
                                 text(buffer.dtype), what(), text(tensor.dtype)));
  std::int64_t room = element_count(buffer.shape);
  Int128 end = Int128{part.offset} + 1;
  for (int d = 0; d < part.box.dims(); ++d) {
    if (part.strides[d] < 0) throw InputError("expected strides of at least 0, found less");
    end += Int128{part.strides[d]} * (part.box.extent(d) - 1);
  }
  if (part.offset < 0 || end > room)
    throw InputError(
        fmt::format("expected parts within its {} elements, found {} to element {}", room, what(),
                    end <= kMaxBytes ? fmt::to_string(static_cast<std::int64_t>(end)) : "2^62"));
  if (!is_nested(part.view()))
    throw InputError(
        fmt::format("expected strides that keep elements apart, found {} with strides {}", what(),
                    text(part.strides)));
}

void Stored::check_conversion(const StoredBuffer& buffer) const {
  for (const StoredPart& part : buffer.parts) {
    const ModelTensor &tensor = (*tensors_)[part.tensor],
                      &first = (*tensors_)[buffer.parts.front().tensor];
    if (tensor.dtype == buffer.dtype || tensor.dtype != first.dtype)
      throw InputError(fmt::format(
          "expected tensors of one dtype other than {}, to convert, found {} {} and {} {}",
          text(buffer.dtype), text(first.dtype), first.name, text(tensor.dtype), tensor.name));
    if (!is_floating(tensor.dtype) || !is_floating(buffer.dtype))
      throw InputError(fmt::format("expected floating-point dtypes, to convert, found {} and {} {}",
                                   text(buffer.dtype), text(tensor.dtype), tensor.name));
  }
}

// Sweeps over the offsets and compares only parts with overlapping spans.
void Stored::check_disjoint(const StoredBuffer& buffer) const {
  if (buffer.parts.size() < 2) return;
  std::vector<const StoredPart*> order, open;
  for (const StoredPart& part : buffer.parts) order.push_back(&part);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->offset < b->offset; });
  std::int64_t budget = kMostRuns;
  std::vector<Meeting> meetings;
  for (const StoredPart* part : order) {
    StridedView view = part->view();
    std::erase_if(open, [&](const auto* other) { return other->view().end() <= view.offset; });
    for (const StoredPart* other : open) {
      if (!find_meetings(view, other->view(), budget, meetings))
        throw InputError("expected fewer parts that lie between each other, found too many");
      if (!meetings.empty())
        throw InputError(fmt::format("expected parts that do not overlap in it, found {} and {}",
                                     element_text((*tensors_)[other->tensor], other->box),
                                     element_text((*tensors_)[part->tensor], part->box)));
    }
    open.push_back(part);
  }
}

std::optional<StoredBufferId> Stored::find(Rank rank, std::string_view name) const {
  auto known = by_name_.find(name);
  if (known == by_name_.end()) return std::nullopt;
  const OfName& all = known->second;
  auto found = std::lower_bound(all.begin(), all.end(), rank,
                                [](const auto& own, Rank wanted) { return own.first < wanted; });
  if (found == all.end() || found->first != rank) return std::nullopt;
  return found->second;
}

std::optional<StoredBufferId> Stored::find_any(std::string_view name) const {
  auto known = by_name_.find(name);
  return known == by_name_.end() ? std::nullopt : std::optional(known->second.front().second);
}

std::span<const Stored::PartId> Stored::parts_of(Rank rank, ModelTensorId tensor) const {
  if (!sorted_) sort_parts();
  auto [first, last] =
      std::equal_range(keys_.begin(), keys_.end(), key_of(rank, (*tensors_)[tensor].same_as));
  return {parts_.data() + (first - keys_.begin()), to_index(last - first)};
}

// Stable: parts with equal keys stay in the order in which they were added.
void Stored::sort_parts() const {
  std::vector<std::pair<std::uint64_t, PartId>> pairs;
  pairs.reserve(keys_.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) pairs.emplace_back(keys_[i], parts_[i]);
  auto is_before = [](const auto& a, const auto& b) {
    return std::tuple(a.first, a.second.buffer, a.second.part) <
           std::tuple(b.first, b.second.buffer, b.second.part);
  };
  // Files often list them by tensor and rank already.
  if (!std::is_sorted(pairs.begin(), pairs.end(), is_before))
    std::sort(pairs.begin(), pairs.end(), is_before);
  for (std::size_t i = 0; i < keys_.size(); ++i) std::tie(keys_[i], parts_[i]) = pairs[i];
  sorted_ = true;
}

std::size_t StoredBuffer::first_part_at(std::int64_t offset) const {
  if (parts.size() == 1) return parts.front().view().end() <= offset ? 1 : 0;
  return to_index(std::upper_bound(reach.begin(), reach.end(), offset) - reach.begin());
}

std::vector<Rank> Stored::ranks() const {
  std::set<Rank> out;
  for (const StoredBuffer& buffer : buffers_) out.insert(buffer.rank);
  return {out.begin(), out.end()};
}

std::string element_text(const ModelTensor& tensor, const Box& box) {
  std::string out = tensor.name + "[";
  for (int d = 0; d < box.dims(); ++d) {
    if (d > 0) out += ",";
    bool whole = d < tensor.shape.size() && box.lo[d] == 0 && box.hi[d] == tensor.shape[d];
    if (whole)
      out += ":";
    else if (box.extent(d) == 1)
      out += fmt::to_string(box.lo[d]);
    else
      out += fmt::format("{}:{}", box.lo[d], box.hi[d]);
  }
  return out + "]";
}

}  // namespace reshard
