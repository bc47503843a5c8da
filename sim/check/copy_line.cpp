// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/copy_line.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "sim/check/layout_line.h"

namespace reshard::sim {
namespace {

// How many elements a copy moves, if its line states that for both ends.
struct Amount {
  std::optional<std::int64_t> count, bytes;
};

class EndReader {
 public:
  EndReader(TraceFields& fields, const Stored& side, const Relays& relays, const Amount& amount)
      : fields_(fields), side_(side), relays_(relays), amount_(amount) {}

  CopyEnd read() {
    CopyEnd out{};
    out.rank = Rank{static_cast<std::int32_t>(fields_.integer("rank", 0, kMaxRanks - 1))};
    out.is_box = fields_.has("tensor");
    auto box = fields_.optional_string("box", "a box such as \"0:4,:\"");
    if (out.is_box) {
      out.tensor = side_.tensors().at(fields_.string("tensor", "the name of a tensor"), "tensor");
      const Shape& shape = side_.tensors()[out.tensor].shape;
      out.box = box ? parse_box(*box, shape, "box") : box_of(shape);
    } else {
      std::string name = fields_.string("buffer", "the name of a buffer, or a \"tensor\"");
      std::optional<StoredBufferId> id = side_.find(out.rank, name);
      out.relay = id ? -1 : relays_.find(out.rank, name);
      out.is_held = id || out.relay >= 0;
      if (!out.is_held) id = side_.find_any(name);
      if (!id && out.relay < 0)
        throw InputError(
            fmt::format("buffer: expected one that a rank has, found {}", quoted(name, 200)));
      out.buffer = id.value_or(StoredBufferId{-1});
      const Shape& shape =
          id ? side_.buffers()[*id].shape : relays_.buffers()[to_index(out.relay)].shape;
      DType dtype = id ? side_.buffers()[*id].dtype : relays_.buffers()[to_index(out.relay)].dtype;
      out.view = box ? view_of(parse_box(*box, shape, "box"), shape) : view(shape, dtype);
      check_amount(out, dtype);
    }
    if (out.is_box) check_amount(out, {});
    fields_.refuse_others("an end of a copy");
    return out;
  }

 private:
  StridedView view(const Shape& shape, DType dtype) {
    const std::int64_t element = size_bytes(dtype);
    StridedView out;
    if (fields_.has("byte")) {
      out.offset = fields_.integer("byte", 0, kMaxBytes);
      if (out.offset % element != 0)
        throw InputError(fmt::format("byte: expected a multiple of {}, the size of {}, found {}",
                                     element, text(dtype), out.offset));
      out.offset /= element;
    } else {
      out.offset = fields_.integer("offset", 0, kMaxBytes, 0);
    }
    if (const TraceJson* extents = fields_.find("extents"))
      out.extents = read_integers(fields_, "extents", *extents);
    else
      out.extents = {count(shape, dtype) - (amount_.count || amount_.bytes ? 0 : out.offset)};
    out.strides = row_major(out.extents);
    if (const TraceJson* strides = fields_.find("strides")) {
      out.strides = read_integers(fields_, "strides", *strides);
      if (out.strides.size() != out.extents.size())
        fields_.fail("strides", "one for each of \"extents\"", *strides);
    }
    check_size(out);
    return out;
  }

  std::int64_t count(const Shape& shape, DType dtype) const {
    const std::int64_t element = size_bytes(dtype);
    if (amount_.bytes && *amount_.bytes % element != 0)
      throw InputError(fmt::format("bytes: expected a multiple of {}, the size of {}, found {}",
                                   element, text(dtype), *amount_.bytes));
    if (amount_.bytes) return *amount_.bytes / element;
    return amount_.count.value_or(element_count(shape));
  }

  // Bytes can only be those of a buffer; a box must have as many elements as the line states.
  void check_amount(CopyEnd& end, DType dtype) const {
    std::int64_t count = end.count();
    if (amount_.count && *amount_.count != count)
      throw InputError(
          fmt::format("count: expected {}, as the box has, found {}", count, *amount_.count));
    if (!amount_.bytes) return;
    if (end.is_box) throw InputError("bytes: expected buffers at both ends, found a tensor");
    std::int64_t bytes = count * size_bytes(dtype);
    if (bytes != *amount_.bytes)
      throw InputError(
          fmt::format("bytes: expected {}, as the box has, found {}", bytes, *amount_.bytes));
    end.is_raw = true;
  }

  // Refuses views so large that their numbers would overflow.
  static void check_size(const StridedView& view) {
    Int128 end = view.offset, count = 1;
    for (int d = 0; d < view.dims(); ++d) {
      if (view.extents[d] < 0) throw InputError("offset: expected one within the buffer");
      end += Int128{view.extents[d]} * view.strides[d];
      count *= view.extents[d];
      if (end > kMaxBytes || count > kMaxBytes)
        throw InputError("extents: expected at most 2^62 elements, found more");
    }
  }

  TraceFields& fields_;
  const Stored& side_;
  const Relays& relays_;
  const Amount& amount_;
};

CopyEnd read_end(TraceFields& line, std::string_view key, const Stored& side, const Relays& relays,
                 const Amount& amount) {
  constexpr std::string_view kWhat =
      "an object such as {\"rank\": 0, \"tensor\": \"w\", \"box\": \"0:4,:\"}";
  const TraceJson& value = line.required(key, kWhat);
  if (!value.is_object()) line.fail(key, kWhat, value);
  std::string place(key);
  TraceFields fields(value, place);
  try {
    return EndReader(fields, side, relays, amount).read();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).starts_with(place)) throw;
    throw error.in(place);
  }
}

}  // namespace

std::pair<CopyEnd, CopyEnd> read_copy(TraceFields& fields, const Stored& source,
                                      const Stored& destination, const Relays& relays) {
  Amount amount;
  if (fields.has("count")) amount.count = fields.integer("count", 0, kMaxBytes);
  if (fields.has("bytes")) amount.bytes = fields.integer("bytes", 0, kMaxBytes);
  CopyEnd from = read_end(fields, "from", source, relays, amount);
  CopyEnd to = read_end(fields, "to", destination, relays, amount);
  return {std::move(from), std::move(to)};
}

void read_order(TraceFields& fields, std::int64_t line, CopyOrder& order) {
  constexpr std::string_view kWhat = "the id of an earlier line, or a list of them";
  auto id_in = [&](std::string_view key, const TraceJson& value) {
    if (!value.is_string() && !value.is_number_integer()) fields.fail(key, kWhat, value);
    return fields.id_of(value, key);
  };
  std::vector<std::string> after;
  if (const TraceJson* value = fields.find("after")) {
    if (!value->is_array()) after.push_back(id_in("after", *value));
    if (value->is_array())
      for (const TraceJson& entry : *value) after.push_back(id_in("after", entry));
  }
  const TraceJson* id = fields.find("id");
  order.add(line, id == nullptr ? "" : id_in("id", *id), after);
}

Update read_update(TraceFields& fields, std::int64_t line) {
  Update out{fields.string("update", "the name of what changes sources, such as \"step 2\""),
             fields.ranks("ranks"), fields.optional_string("buffer", "the name of a buffer"), line};
  std::sort(out.ranks.begin(), out.ranks.end());
  return out;
}

void read_relay(TraceFields& fields, const Stored& source, const Stored& destination,
                Relays& relays) {
  RelayBuffer buffer{Rank{0}, fields.string("buffer", "the name of a buffer"),
                     parse_shape(fields.shape("shape"), "shape"),
                     parse_dtype(fields.string("dtype", "a dtype such as \"bf16\""), "dtype")};
  for (Rank rank : fields.ranks("ranks")) {
    buffer.rank = rank;
    if (source.find(rank, buffer.name) || destination.find(rank, buffer.name))
      throw InputError(fmt::format("buffer: expected a name that rank {} has not, found {}",
                                   to_int(rank), quoted(buffer.name, 200)));
    relays.add(buffer);
  }
  fields.refuse_others("a relay");
}

}  // namespace reshard::sim
