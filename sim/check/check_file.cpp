// SPDX-License-Identifier: BSD-3-Clause
#include "sim/check/check_file.h"

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/stored/generators.h"
#include "sim/check/copy_line.h"
#include "sim/check/layout_line.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {
namespace {

// Changes that frameworks make to weights, other than moving elements. They are refused by name, so
// that a user who looks for one learns that it is not supported.
void refuse_changes(const TraceFields& fields) {
  constexpr std::pair<const char*, const char*> kChanges[] = {
      {"quantize", "quantising"},       {"requantize", "quantising"},
      {"add", "adding to a tensor"},    {"multiply", "multiplying a tensor"},
      {"swizzle", "a kernel's format"}, {"shuffle", "a kernel's format"},
      {"kernel", "a kernel's format"}};
  for (auto [field, what] : kChanges)
    if (fields.has(field))
      throw InputError(
          fmt::format("{}: expected copies of elements, found {}; transfer before it, "
                      "or do it again afterwards",
                      field, what));
}

class Reader {
 public:
  Reader(LineReader& lines, const std::string& file) : lines_(lines) {
    out_.file = file;
    out_.tensors = std::make_unique<ModelTensors>();
    named_ = std::make_unique<Stored>(*out_.tensors);
    out_.source = std::make_unique<Stored>(*out_.tensors);
    out_.destination = std::make_unique<Stored>(*out_.tensors);
  }

  // Reads copies alone, between layouts that are known; the file needs no header.
  Reader(LineReader& lines, const std::string& file, ModelLayouts layouts) : lines_(lines) {
    out_.file = file;
    out_.tensors = std::move(layouts.tensors);
    named_ = std::make_unique<Stored>(*out_.tensors);
    out_.source = std::move(layouts.source);
    out_.destination = std::move(layouts.destination);
    has_layouts_ = true;
  }

  CheckedCopies copies(const std::function<void(std::int64_t)>& progress) {
    read(progress);
    start_judging();
    out_.copies = judge().copies();
    out_.faults = judge().finish();
    out_.has_more = judge().has_more();
    return std::move(out_);
  }

  ModelLayouts sides() {
    passes_copies_ = true;
    read({});
    check_sides();
    return {std::move(out_.tensors), std::move(out_.source), std::move(out_.destination), nullptr};
  }

 private:
  void read(const std::function<void(std::int64_t)>& progress) {
    std::string line;
    bool headed = false;
    while (lines_.next(line)) {
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      if (progress && lines_.line_number() % 4096 == 0) progress(lines_.line_number());
      std::string place = lines_.place();
      const bool is_header = line.find("\"reshard_check\"") != std::string::npos;
      headed = headed || (has_layouts_ && !is_header);
      if (!headed && !is_header)
        throw InputError(fmt::format(
            "{}: expected a header such as {{\"reshard_check\": 1}} as the first line, found {}",
            place, file_look(line)));
      TraceJson json = parse_json_line(line, place);
      TraceFields fields(json, place);
      try {
        if (!headed)
          read_header(fields);
        else
          read_line(fields);
      } catch (const InputError& error) {
        if (std::string_view(error.what()).starts_with(place)) throw;
        throw error.in(place);
      }
      headed = true;
    }
    if (!headed && !has_layouts_)
      throw InputError(fmt::format(
          "{}:1: expected a header such as {{\"reshard_check\": 1}} as the first line, found an "
          "empty file",
          out_.file));
  }

  void read_header(TraceFields& fields) {
    fields.integer("reshard_check", 1, 1);
    if (auto order = fields.optional_string("order", "\"lines\"")) {
      if (*order != "lines")
        throw InputError(
            fmt::format("order: expected \"lines\", found {}", reshard::quoted(*order)));
      is_in_order_ = true;
    }
    fields.refuse_others("the header");
  }

  void read_line(TraceFields& fields) {
    if (fields.has("from") || fields.has("to") || fields.has("update")) {
      has_copies_ = true;
      if (passes_copies_) return;
      start_judging();
      if (fields.has("update"))
        read_change(fields);
      else
        read_ends(fields);
      fields.refuse_others("a copy");
      return;
    }
    if (out_.judge || has_copies_)
      throw InputError("expected tensors and buffers before the first copy, found one after it");
    refuse_changes(fields);
    const TraceJson* side = fields.find("side");
    if (side != nullptr && *side == "relay")
      read_relay(fields, *out_.source, *out_.destination, relays_);
    else if (fields.has("buffer") || side != nullptr)
      read_buffer(fields, *out_.source, *out_.destination, *named_);
    else
      read_tensor(fields, *out_.tensors);
  }

  // Reads the order first: it decides which elements a relay has when the copy reads it.
  void read_ends(TraceFields& fields) {
    read_order(fields, lines_.line_number(), judge().order());
    auto [from, to] = read_copy(fields, *out_.source, *out_.destination, judge().relays());
    judge().copy(from, to, lines_.line_number());
    if (to.relay < 0) add_bytes(out_.bytes, Int128{to.count()} * size_bytes(dtype_of(to)));
  }

  void read_change(TraceFields& fields) {
    read_order(fields, lines_.line_number(), judge().order());
    judge().update(read_update(fields, lines_.line_number()));
  }

  // The dtype in which the elements are sent.
  DType dtype_of(const CopyEnd& to) const {
    if (to.is_box) return (*out_.tensors)[to.tensor].dtype;
    const StoredBuffer& buffer = out_.destination->buffers()[to.buffer];
    return buffer.converts && !buffer.parts.empty()
               ? (*out_.tensors)[buffer.parts.front().tensor].dtype
               : buffer.dtype;
  }

  void check_sides() const {
    try {
      check_scales(*out_.destination);
    } catch (const InputError& error) {
      throw error.in(out_.file);
    }
  }

  void start_judging() {
    if (out_.judge) return;
    check_sides();
    out_.judge = std::make_unique<Judge>(*out_.source, *out_.destination, std::move(relays_));
    if (is_in_order_) out_.judge->order().set_by_lines();
  }

  Judge& judge() { return *out_.judge; }

  LineReader& lines_;
  CheckedCopies out_;              // has a judge from the first copy on
  std::unique_ptr<Stored> named_;  // buffers of the side "named", which no rank has
  Relays relays_;                  // until the judge gets them
  bool passes_copies_ = false, has_copies_ = false, is_in_order_ = false, has_layouts_ = false;
};

}  // namespace

CheckedCopies check_copies(std::istream& in, const std::string& file,
                           const std::function<void(std::int64_t)>& progress) {
  LineReader lines(in, file);
  return Reader(lines, file).copies(progress);
}

CheckedCopies check_copies(std::istream& in, const std::string& file, ModelLayouts layouts) {
  LineReader lines(in, file);
  return Reader(lines, file, std::move(layouts)).copies({});
}

ModelLayouts read_sides(LineReader& lines, const std::string& file) {
  return Reader(lines, file).sides();
}

ModelLayouts read_sides(const std::string& path) {
  ModelLayouts out;
  with_file(path, "layouts", [&](std::istream& in, const std::string& file) {
    LineReader lines(in, file);
    out = read_sides(lines, file);
  });
  return out;
}

std::shared_ptr<const ModelLayouts> read_layouts(LineReader& lines, const std::string& file) {
  ModelLayouts out = read_sides(lines, file);
  try {
    out.requests = std::make_unique<StoredRequests>(*out.source, *out.destination);
  } catch (const InputError& error) {
    throw error.in(file);
  }
  return std::make_shared<const ModelLayouts>(std::move(out));
}

bool is_check_file(std::string_view start) {
  const FileKind* kind = file_kind(start);
  return kind != nullptr && kind->id == "copies";
}

}  // namespace reshard::sim
