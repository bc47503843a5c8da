// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/copy_line.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "sim/check/layout_line.h"

namespace reshard::sim {
namespace {

// How many elements a copy has, if its line says so for both ends.
struct Amount {
  std::optional<std::int64_t> count, bytes;
};

class EndReader {
 public:
  EndReader(TraceFields& fields, const Stored& side, const Amount& amount)
      : fields_(fields), side_(side), amount_(amount) {}

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
      if (!id)
        throw InputError(fmt::format("buffer: expected one that rank {} has, found {}",
                                     to_int(out.rank), quoted(name, 200)));
      out.buffer = *id;
      const StoredBuffer& buffer = side_.buffers()[*id];
      out.view = box ? view_of(parse_box(*box, buffer.shape, "box"), buffer.shape) : view(buffer);
    }
    fields_.refuse_others("an end of a copy");
    return out;
  }

 private:
  StridedView view(const StoredBuffer& buffer) {
    const std::int64_t element = size_bytes(buffer.dtype);
    StridedView out;
    if (fields_.has("byte")) {
      out.offset = fields_.integer("byte", 0, kMaxBytes);
      if (out.offset % element != 0)
        throw InputError(fmt::format("byte: expected a multiple of {}, the size of {}, found {}",
                                     element, text(buffer.dtype), out.offset));
      out.offset /= element;
    } else {
      out.offset = fields_.integer("offset", 0, kMaxBytes, 0);
    }
    if (const TraceJson* extents = fields_.find("extents"))
      out.extents = read_integers(fields_, "extents", *extents);
    else
      out.extents = {count(buffer) - (amount_.count || amount_.bytes ? 0 : out.offset)};
    out.strides = row_major(out.extents);
    if (const TraceJson* strides = fields_.find("strides")) {
      out.strides = read_integers(fields_, "strides", *strides);
      if (out.strides.size() != out.extents.size())
        fields_.fail("strides", "one for each of \"extents\"", *strides);
    }
    check_size(out);
    return out;
  }

  std::int64_t count(const StoredBuffer& buffer) const {
    const std::int64_t element = size_bytes(buffer.dtype);
    if (amount_.bytes && *amount_.bytes % element != 0)
      throw InputError(fmt::format("bytes: expected a multiple of {}, the size of {}, found {}",
                                   element, text(buffer.dtype), *amount_.bytes));
    if (amount_.bytes) return *amount_.bytes / element;
    return amount_.count.value_or(element_count(buffer.shape));
  }

  // No view can be so large that its numbers overflow.
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
  const Amount& amount_;
};

// Bytes are those of buffers; a box has as many elements as the line says.
void check_amount(const Amount& amount, CopyEnd& end, const Stored& side) {
  std::int64_t count = end.count();
  if (amount.count && *amount.count != count)
    throw InputError(
        fmt::format("count: expected {}, as an end has, found {}", count, *amount.count));
  if (!amount.bytes) return;
  if (end.is_box) throw InputError("bytes: expected buffers at both ends, found a tensor");
  std::int64_t bytes = count * size_bytes(side.buffers()[end.buffer].dtype);
  if (bytes != *amount.bytes)
    throw InputError(
        fmt::format("bytes: expected {}, as an end has, found {}", bytes, *amount.bytes));
  end.is_raw = true;
}

CopyEnd read_end(TraceFields& line, std::string_view key, const Stored& side,
                 const Amount& amount) {
  constexpr std::string_view kWhat =
      "an object such as {\"rank\": 0, \"tensor\": \"w\", \"box\": \"0:4,:\"}";
  const TraceJson& value = line.required(key, kWhat);
  if (!value.is_object()) line.fail(key, kWhat, value);
  std::string place(key);
  TraceFields fields(value, place);
  try {
    return EndReader(fields, side, amount).read();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).starts_with(place)) throw;
    throw error.in(place);
  }
}

}  // namespace

std::pair<CopyEnd, CopyEnd> read_copy(TraceFields& fields, const Stored& source,
                                      const Stored& destination) {
  Amount amount;
  if (fields.has("count")) amount.count = fields.integer("count", 0, kMaxBytes);
  if (fields.has("bytes")) amount.bytes = fields.integer("bytes", 0, kMaxBytes);
  CopyEnd from = read_end(fields, "from", source, amount);
  CopyEnd to = read_end(fields, "to", destination, amount);
  for (CopyEnd* end : {&from, &to}) check_amount(amount, *end, end == &from ? source : destination);
  fields.refuse_others("a copy");
  return {std::move(from), std::move(to)};
}

}  // namespace reshard::sim
