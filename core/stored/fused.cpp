// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/stored/generators.h"

namespace reshard {
namespace {

// Rows of a block that are consecutive in a tensor; rows without a tensor are left out.
struct Segment {
  std::int64_t at;  // in the block
  ModelTensorId tensor;
  std::int64_t lo, rows;  // of the tensor
};

struct Rows {
  std::int64_t count = 0;
  std::vector<Segment> segments;  // ascending
};

// Pieces of all ranks of one block would take gigabytes.
constexpr std::int64_t kMostSegments = std::int64_t{1} << 24;

class Fusing {
 public:
  Fusing(Stored& to, const FusedBuffer& buffer) : to_(to), buffer_(buffer) {}

  void add() {
    if (buffer_.blocks.empty()) throw InputError("expected at least one block, found none");
    for (const FusedBlock& block : buffer_.blocks) {
      rows_.push_back(rows_of(block));
      Shape shape = first_tensor().shape;
      shape[buffer_.dim] = rows_.back().count;
      layouts_.emplace_back(shape, first_tensor().dtype, buffer_.mesh,
                            buffer_.placements.placements, buffer_.placements.order);
      if (layouts_.back().has_addends())
        throw InputError("expected placements without Partial, found one");
    }
    for (std::int32_t position = 0; position < buffer_.mesh->size(); ++position) add_rank(position);
  }

 private:
  const ModelTensor& tensor(ModelTensorId id) const { return to_.tensors()[id]; }
  const ModelTensor& first_tensor() const {
    return tensor(buffer_.blocks.front().sections.front().tensor);
  }

  // The length of the tensor along the fused dim; its other dims are those of the first tensor.
  std::int64_t length_of(ModelTensorId id) const {
    Shape shape = tensor(id).shape, first = first_tensor().shape;
    if (buffer_.dim >= shape.size())
      throw InputError(fmt::format("dim: expected a dim of {}[{}], found {}", tensor(id).name,
                                   text(shape), buffer_.dim));
    std::int64_t length = shape[buffer_.dim];
    if (first.size() == shape.size()) shape[buffer_.dim] = first[buffer_.dim];
    if (shape != first || tensor(id).dtype != first_tensor().dtype)
      throw InputError(
          fmt::format("expected tensors that differ in dim {} alone, found {} {}[{}] and {} {}[{}]",
                      buffer_.dim, first_tensor().name, text(first_tensor().dtype), text(first),
                      tensor(id).name, text(tensor(id).dtype), text(tensor(id).shape)));
    return length;
  }

  Rows rows_of(const FusedBlock& block) const {
    Rows out;
    auto put = [&](ModelTensorId id, std::int64_t lo, std::int64_t rows) {
      if (out.segments.size() >= to_index(kMostSegments) || rows > kMaxBytes - out.count)
        throw InputError("expected fewer rows and sections, found more than 2^24 of sections");
      if (rows > 0) out.segments.push_back({out.count, id, lo, rows});
      out.count += rows;
    };
    if (block.repeat) {
      add_repeated(block, put);
    } else if (block.unit_rows == 0) {
      ModelTensorId id = block.sections.front().tensor;
      put(id, 0, length_of(id));
    } else {
      for (std::int64_t group = 0, groups = groups_of(block); group < groups; ++group)
        for (const FusedBlock::Section& section : block.sections) {
          std::int64_t rows = section.units * block.unit_rows;
          put(section.tensor, group * rows, rows);
        }
    }
    out.count = ceil_div(out.count, block.pad) * block.pad;
    return out;
  }

  std::int64_t groups_of(const FusedBlock& block) const {
    std::optional<std::int64_t> groups;
    for (const FusedBlock::Section& section : block.sections) {
      std::int64_t length = length_of(section.tensor);
      std::optional<std::int64_t> rows = checked_product(section.units, block.unit_rows);
      if (!rows || length % *rows != 0 || (groups && *groups != length / *rows))
        throw InputError(fmt::format(
            "expected sections that end together, found {} rows of {} in units of {} x {}{}",
            length, tensor(section.tensor).name, section.units, block.unit_rows,
            groups ? fmt::format(" after {} groups of the first", *groups) : ""));
      groups = length / *rows;
    }
    return *groups;
  }

  template <class Put>
  void add_repeated(const FusedBlock& block, Put&& put) const {
    ModelTensorId id = block.sections.front().tensor;
    std::int64_t length = length_of(id), ranks = 1;
    for (int axis = 0; axis < buffer_.mesh->axes(); ++axis)
      if (const Placement& placement = buffer_.placements.placements[to_index(axis)];
          placement.is_shard_like() && placement.dim == buffer_.dim)
        ranks *= buffer_.mesh->axis_size(axis);
    std::int64_t blocks = length / block.unit_rows;
    if (length % block.unit_rows != 0 || blocks == 0 ||
        (blocks >= ranks ? blocks % ranks : ranks % blocks) != 0)
      throw InputError(
          fmt::format("expected blocks of {} rows that {} ranks share evenly, found {} rows of {}",
                      block.unit_rows, ranks, length, tensor(id).name));
    for (std::int64_t i = 0; i < std::max(blocks, ranks); ++i)
      put(id, (blocks >= ranks ? i : i / (ranks / blocks)) * block.unit_rows, block.unit_rows);
  }

  void add_rank(std::int32_t position) {
    const int dim = buffer_.dim;
    StoredBuffer out{buffer_.mesh->rank_at(position), buffer_.name, {}, first_tensor().dtype, {}};
    Shape shape = layouts_.front().local_shape(position);
    std::vector<std::int64_t> begins;
    shape[dim] = 0;
    for (const Layout& layout : layouts_) {
      begins.push_back(shape[dim]);
      shape[dim] += layout.local_shape(position)[dim];
    }
    if (element_count(shape) == 0) return;
    DimVector strides = in_memory(shape, out.shape);
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      std::map<ModelTensorId, std::size_t> last;
      layouts_[i].for_each_part(position, [&](const Box& box, DimVector local) {
        local[dim] += begins[i];
        add_parts(rows_[i], box, local, strides, last, out.parts);
      });
    }
    to_.add(std::move(out));
  }

  // Strides by dim of the tensors; `stored` gets the extents in memory order.
  DimVector in_memory(const Shape& shape, Shape& stored) const {
    DimVector strides(shape.size());
    std::int64_t stride = 1;
    for (int i = shape.size() - 1; i >= 0; --i) {
      int d = buffer_.order.empty() ? i : buffer_.order[to_index(i)];
      strides[d] = stride;
      stride *= shape[d];
    }
    for (int i = 0; i < shape.size(); ++i)
      stored.push_back(shape[buffer_.order.empty() ? i : buffer_.order[to_index(i)]]);
    return strides;
  }

  // A box of the block, as parts of its tensors. Single rows at equal distances are one part.
  void add_parts(const Rows& rows, const Box& box, const DimVector& local, const DimVector& strides,
                 std::map<ModelTensorId, std::size_t>& last, std::vector<StoredPart>& out) const {
    const int dim = buffer_.dim;
    auto segment =
        std::upper_bound(rows.segments.begin(), rows.segments.end(), box.lo[dim],
                         [](std::int64_t at, const Segment& of) { return at < of.at + of.rows; });
    for (; segment != rows.segments.end() && segment->at < box.hi[dim]; ++segment) {
      std::int64_t lo = std::max(segment->at, box.lo[dim]),
                   hi = std::min(segment->at + segment->rows, box.hi[dim]);
      StoredPart part{segment->tensor, box, 0, strides};
      part.box.lo[dim] = segment->lo + lo - segment->at;
      part.box.hi[dim] = part.box.lo[dim] + hi - lo;
      for (int d = 0; d < box.dims(); ++d) part.offset += strides[d] * local[d];
      part.offset += strides[dim] * (lo - box.lo[dim]);
      auto [at, is_new] = last.try_emplace(part.tensor, out.size());
      if (!is_new && joins(out[at->second], part)) continue;
      at->second = out.size();
      out.push_back(part);
    }
  }

  bool joins(StoredPart& before, const StoredPart& part) const {
    const int dim = buffer_.dim;
    Box next = before.box;
    next.lo[dim] = before.box.hi[dim];
    next.hi[dim] = part.box.hi[dim];
    const std::int64_t rows = before.box.extent(dim), distance = part.offset - before.offset;
    if (part.box != next || distance <= 0 || distance % rows != 0) return false;
    const std::int64_t stride = distance / rows;
    bool fits = (rows == 1 || stride == before.strides[dim]) &&
                (part.box.extent(dim) == 1 || stride == part.strides[dim]);
    if (!fits) return false;
    before.strides[dim] = stride;
    before.box.hi[dim] = next.hi[dim];
    return true;
  }

  Stored& to_;
  const FusedBuffer& buffer_;
  std::vector<Rows> rows_;       // by block
  std::vector<Layout> layouts_;  // of the fused rows
};

// The number after `prefix`, if the word consists of both.
std::optional<std::int64_t> number_after(std::string_view word, std::string_view prefix) {
  std::int64_t value = 0;
  if (!word.starts_with(prefix)) return std::nullopt;
  word.remove_prefix(prefix.size());
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size() || value < 1 ||
      value > kMaxBytes / 2)
    return std::nullopt;
  return value;
}

}  // namespace

FusedBlock parse_fused_block(std::string_view text, const ModelTensors& tensors,
                             std::string_view field) {
  FusedBlock out;
  bool has_units = false;
  Cursor whole(text, field);
  for (std::string_view rest = text; !rest.empty();) {
    std::size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
    if (out.sections.empty() || tensors.find(word.substr(0, word.rfind(':'))) != nullptr) {
      std::size_t colon = tensors.find(word) != nullptr ? std::string_view::npos : word.rfind(':');
      auto units = colon == std::string_view::npos ? std::optional<std::int64_t>(1)
                                                   : number_after(word.substr(colon), ":");
      if (!units) whole.fail("sections such as 'q_proj:4 k_proj:1 v_proj:1 x128'");
      has_units = has_units || colon != std::string_view::npos;
      out.sections.push_back({tensors.at(word.substr(0, colon), field), *units});
    } else if (auto unit = number_after(word, "x")) {
      out.unit_rows = *unit;
    } else if (auto pad = number_after(word, "pad")) {
      out.pad = *pad;
    } else if (word == "repeat") {
      out.repeat = true;
    } else {
      whole.fail("tensors of earlier lines, then 'x128', 'pad64' or 'repeat'");
    }
  }
  if (out.sections.empty()) whole.fail("a tensor of an earlier line");
  bool one = out.sections.size() == 1 && !has_units;
  if ((!one && out.unit_rows == 0) || (out.repeat && (!one || out.unit_rows == 0)))
    whole.fail(out.repeat ? "one tensor and the rows of a block, such as 'k_proj x128 repeat'"
                          : "the rows of a unit, such as 'x128'");
  return out;
}

void add_fused(Stored& to, const FusedBuffer& buffer) { Fusing(to, buffer).add(); }

}  // namespace reshard
