// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/layout_report.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/check/layout_line.h"
#include "sim/report/json.h"
#include "sim/report/table.h"

namespace reshard::sim {
namespace {

// The elements as a box of the row-major buffer, if they are one.
std::optional<Box> box_in(const LayoutRow& row) {
  StridedView place = row.place;
  // In the tensor, an expert that has a buffer of its own has one index more.
  while (place.dims() > row.buffer_shape.size() && place.extents[0] == 1) {
    place.extents = without_first(place.extents);
    place.strides = without_first(place.strides);
  }
  if (place.dims() != row.buffer_shape.size()) return std::nullopt;
  DimVector strides = row_major(row.buffer_shape);
  for (int d = 0; d < place.dims(); ++d)
    if (place.extents[d] > 1 && place.strides[d] != strides[d]) return std::nullopt;
  Box out = box_at(index_at(place.offset, row.buffer_shape), place.extents);
  return contains(box_of(row.buffer_shape), out) ? std::optional(out) : std::nullopt;
}

std::string buffer_text(const LayoutRow& row) {
  return row.converts ? fmt::format("{} ({})", row.buffer, text(row.dtype))
                      : std::string(row.buffer);
}

std::string place_text(const LayoutRow& row) {
  if (std::optional<Box> box = box_in(row)) return text(*box);
  std::string out = fmt::format("element {}", row.place.offset);
  if (row.place.count() == 1) return out;
  return fmt::format("{}, strides {}", out, text(row.place.strides));
}

void add_part(const StoredBuffer& buffer, const StoredPart& part, std::string_view side,
              const WhereQuery& query, std::vector<LayoutRow>& out) {
  Box box = query.tensor ? intersect(part.box, query.box) : part.box;
  if (box.empty()) return;
  LayoutRow row{side,        buffer.rank,  buffer.name,  part.tensor,    box,
                part.view(), buffer.shape, buffer.dtype, buffer.converts};
  for (int d = 0; d < box.dims(); ++d)
    row.place.offset += (box.lo[d] - part.box.lo[d]) * part.strides[d];
  row.place.extents = box.extents();
  out.push_back(std::move(row));
}

// A name and the "[..]" at its end. The name itself can contain brackets.
std::pair<std::string_view, std::string_view> split_index(std::string_view text,
                                                          const ModelTensors& tensors) {
  std::size_t bracket = text.ends_with(']') ? text.rfind('[') : std::string_view::npos;
  if (bracket == std::string_view::npos || tensors.find(text) != nullptr) return {text, {}};
  return {text.substr(0, bracket), text.substr(bracket)};
}

std::optional<ModelTensorId> tensor_named(std::string_view name, const ModelTensors& tensors) {
  for (const std::string& full : {std::string(name), fmt::format("model.{}", name)})
    if (tensors.find(full) != nullptr) return tensors.at(full, "tensor");
  return std::nullopt;
}

struct OneExpert {
  ModelTensorId tensor;
  std::int64_t number;
};

std::optional<OneExpert> expert_named(std::string_view name, const ModelTensors& tensors) {
  constexpr std::string_view kExperts = "experts.";
  std::size_t at = name.find(kExperts);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t begin = at + kExperts.size(), end = name.find_first_not_of("0123456789", begin);
  if (end == begin || end == std::string_view::npos || end - begin > 9 || name[end] != '.')
    return std::nullopt;
  auto tensor =
      tensor_named(fmt::format("{}{}", name.substr(0, begin), name.substr(end + 1)), tensors);
  if (!tensor) return std::nullopt;
  OneExpert out{*tensor, std::stoll(std::string(name.substr(begin, end - begin)))};
  const Shape& shape = tensors[*tensor].shape;
  if (shape.size() == 0 || out.number >= shape[0]) return std::nullopt;
  return out;
}

// The buffers of that name on the rank, or on any.
std::vector<const StoredBuffer*> buffers_named(std::string_view name, const Stored& side,
                                               std::optional<Rank> rank) {
  std::vector<const StoredBuffer*> out;
  for (const std::string& full : {std::string(name), fmt::format("model.{}", name)}) {
    std::optional<StoredBufferId> found = rank ? side.find(*rank, full) : side.find_any(full);
    if (!found) continue;
    if (rank) return {&side.buffers()[*found]};
    for (const StoredBuffer& buffer : side.buffers())
      if (buffer.name == full) out.push_back(&buffer);
    return out;
  }
  return out;
}

std::vector<WhereQuery> parts_in(const StoredBuffer& buffer, const Box& box,
                                 std::string_view field) {
  std::vector<WhereQuery> out;
  std::int64_t budget = std::int64_t{1} << 24;
  for (const StoredPart& part : buffer.parts) {
    std::vector<Meeting> meetings;
    if (!find_meetings(view_of(box, buffer.shape), part.view(), budget, meetings))
      throw InputError(fmt::format("{}: expected fewer rows of {}, found too many to tell apart",
                                   field, buffer.name));
    for (const Meeting& meeting : meetings) {
      WhereQuery query{part.tensor, meeting.box, std::nullopt};
      for (int d = 0; d < query.box.dims(); ++d) {
        query.box.lo[d] += part.box.lo[d];
        query.box.hi[d] += part.box.lo[d];
      }
      out.push_back(std::move(query));
    }
  }
  if (out.empty())
    throw InputError(
        fmt::format("{}: expected elements of a tensor, found padding of {}", field, buffer.name));
  return out;
}

// Of buffers of one name, those of different ranks must have the same elements there.
std::vector<WhereQuery> parts_in(const std::vector<const StoredBuffer*>& buffers,
                                 std::string_view index, std::string_view field) {
  std::vector<WhereQuery> out;
  auto differ = [&](const StoredBuffer& other) {
    return InputError(fmt::format(
        "{}: expected --rank next to it, as {} has other elements on rank {} than on rank {}",
        field, other.name, to_int(other.rank), to_int(buffers.front()->rank)));
  };
  for (const StoredBuffer* buffer : buffers) {
    if (buffer->shape != buffers.front()->shape) throw differ(*buffer);
    Box box = index.empty() ? box_of(buffer->shape) : parse_box(index, buffer->shape, field);
    std::vector<WhereQuery> own = parts_in(*buffer, box, field);
    if (out.empty()) out = own;
    if (own != out) throw differ(*buffer);
  }
  return out;
}

}  // namespace

WhereQuery parse_where(std::string_view text, const ModelTensors& tensors, std::string_view field) {
  auto [name, index] = split_index(text, tensors);
  WhereQuery out;
  if (std::optional<ModelTensorId> found = tensor_named(name, tensors)) {
    out.tensor = *found;
  } else if (std::optional<OneExpert> expert = expert_named(name, tensors)) {
    out.tensor = expert->tensor;
    const Shape& shape = tensors[expert->tensor].shape;
    out.box = box_of(shape);
    if (!index.empty()) {
      Box rest = parse_box(index, without_first(shape), field);
      for (int d = 0; d < rest.dims(); ++d) {
        out.box.lo[d + 1] = rest.lo[d];
        out.box.hi[d + 1] = rest.hi[d];
      }
    }
    out.box.lo[0] = expert->number;
    out.box.hi[0] = expert->number + 1;
    return out;
  } else {
    out.tensor = tensors.at(name, field);
  }
  const Shape& shape = tensors[*out.tensor].shape;
  out.box = index.empty() ? box_of(shape) : parse_box(index, shape, field);
  return out;
}

std::vector<WhereQuery> parse_place(std::string_view text, const Stored& source,
                                    const Stored& destination, std::optional<Rank> rank,
                                    std::string_view field) {
  auto [name, index] = split_index(text, source.tensors());
  if (!tensor_named(name, source.tensors()) && !expert_named(name, source.tensors())) {
    for (const Stored* side : {&destination, &source})
      if (std::vector<const StoredBuffer*> found = buffers_named(name, *side, rank); !found.empty())
        return parts_in(found, index, field);
    throw InputError(fmt::format("{}: expected a tensor, or a buffer{}, found {}", field,
                                 rank ? fmt::format(" of rank {}", to_int(*rank)) : "",
                                 reshard::quoted(name, 200)));
  }
  WhereQuery out = parse_where(text, source.tensors(), field);
  out.rank = rank;
  return {out};
}

void add_rows(const Stored& side, std::string_view name, const WhereQuery& query,
              std::vector<LayoutRow>& out) {
  const ModelTensors& tensors = side.tensors();
  std::vector<const StoredBuffer*> buffers;
  std::size_t parts = 0;
  for (const StoredBuffer& buffer : side.buffers()) {
    if (query.rank && buffer.rank != *query.rank) continue;
    buffers.push_back(&buffer);
    parts += buffer.parts.size();
  }
  if (!query.tensor) out.reserve(out.size() + parts);
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const auto* a, const auto* b) { return a->rank < b->rank; });
  for (const StoredBuffer* buffer : buffers)
    for (const StoredPart& part : buffer->parts)
      if (!query.tensor || tensors[part.tensor].same_as == tensors[*query.tensor].same_as)
        add_part(*buffer, part, name, query, out);
}

std::string nowhere_text(const Stored& source, const Stored& destination,
                         std::vector<WhereQuery> queries) {
  std::optional<Rank> rank;
  for (WhereQuery& query : queries)
    if (query.rank) rank = std::exchange(query.rank, std::nullopt);
  std::vector<LayoutRow> rows;
  for (const Stored* side : {&source, &destination})
    for (const WhereQuery& query : queries) add_rows(*side, "", query, rows);
  if (!rank || rows.empty()) return "no rank has it\n";
  std::set<Rank> others;
  for (const LayoutRow& row : rows) others.insert(row.rank);
  return fmt::format("rank {} has none of it, but rank {}{}\n", to_int(*rank),
                     to_int(*others.begin()),
                     others.size() > 1 ? fmt::format(" and {} more", others.size() - 1) : "");
}

std::string layout_text(const std::vector<LayoutRow>& list, const ModelTensors& tensors,
                        std::size_t rows, std::size_t width) {
  Table table({"side", ">rank", "elements", "buffer", "where in it"});
  for (std::size_t i = 0; i < list.size() && i < rows; ++i)
    table.add_row({std::string(list[i].side), fmt::to_string(to_int(list[i].rank)),
                   element_text(tensors[list[i].tensor], list[i].box), buffer_text(list[i]),
                   place_text(list[i])});
  std::string out = table.text(width);
  if (list.size() > rows) out += fmt::format("and {} more (-v lists all)\n", list.size() - rows);
  return out;
}

// Writes row by row, without a JSON tree of all rows: models on many ranks have millions.
std::string layout_json(const std::vector<LayoutRow>& list, const ModelTensors& tensors) {
  auto values = [](const DimVector& list) { return fmt::format("[{}]", fmt::join(list, ", ")); };
  std::string out = "{\n  \"schema\": \"reshard.layout/1\",\n  \"parts\": [";
  for (const LayoutRow& row : list)
    fmt::format_to(std::back_inserter(out),
                   "{}\n    {{\"side\": {}, \"rank\": {}, \"tensor\": {}, \"lo\": {}, "
                   "\"extents\": {}, \"buffer\": {}, \"dtype\": {}, \"shape\": {}, "
                   "\"offset\": {}, \"strides\": {}}}",
                   &row == list.data() ? "" : ",", json_text(row.side), to_int(row.rank),
                   json_text(tensors[row.tensor].name), values(row.box.lo),
                   values(row.place.extents), json_text(row.buffer), json_text(text(row.dtype)),
                   values(row.buffer_shape), row.place.offset, values(row.place.strides));
  return out + (list.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace reshard::sim
