// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes the text of a file of digests: JSON, one line per tensor and part
// (docs/digest.md).
#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/layout/layout.h"
#include "core/layout/mesh.h"
#include "sim/check/layout_line.h"
#include "sim/digest/digest_file.h"
#include "sim/inputs/json_reader.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {
namespace {

constexpr JsonLimits kLimits{5, std::int64_t{1} << 27, 64};
// A limit on the ranks that all parts name together.
constexpr std::size_t kMostRankParts = std::size_t{1} << 24;

class Reader {
 public:
  Reader(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  DigestFile read() {
    out_.place = place_;
    if (text_.find("\"reshard_digest\"") == std::string_view::npos)
      throw InputError(fmt::format("{}: expected digests, as reshard digest prints them, found {}",
                                   place_, file_look(text_)));
    auto json = read_json<TraceJson>(text_, place_, kLimits);
    if (!json.is_object())
      throw InputError(fmt::format("{}: expected one JSON object, found {}", place_, shown(json)));
    TraceFields fields(json, place_);
    fields.integer("reshard_digest", 1, 1);
    for (DigestSide side : kDigestSides) {
      const TraceJson& sides = list(fields, "sides", "a list of \"from\" and \"to\"");
      if (std::find(sides.begin(), sides.end(), text(side)) != sides.end())
        out_.sides.push_back(side);
    }
    if (list(fields, "sides", "").size() != out_.sides.size())
      fields.fail("sides", "a list of \"from\" and \"to\", each once", *fields.find("sides"));
    read_each(list(fields, "tensors", "a list of objects"), "tensors",
              [&](TraceFields& each) { read_tensor(each); });
    read_each(list(fields, "parts", "a list of objects"), "parts",
              [&](TraceFields& each) { read_part(each); });
    fields.refuse_others("digests");
    return std::move(out_);
  }

 private:
  static const TraceJson& list(TraceFields& fields, std::string_view key, std::string_view what) {
    const TraceJson& value = fields.required(key, what);
    if (!value.is_array()) fields.fail(key, what, value);
    return value;
  }

  template <class Read>
  void read_each(const TraceJson& values, std::string_view name, Read&& read) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::string place = fmt::format("{}: {}[{}]", place_, name, i);
      if (!values[i].is_object())
        throw InputError(fmt::format("{}: expected an object, found {}", place, shown(values[i])));
      TraceFields fields(values[i], place);
      try {
        read(fields);
        fields.refuse_others(name);
      } catch (const InputError& error) {
        if (std::string_view(error.what()).starts_with(place)) throw;
        throw error.in(place);
      }
    }
  }

  void read_tensor(TraceFields& fields) {
    DigestTensor tensor{fields.string("tensor", "the name of a tensor"),
                        parse_shape(fields.shape("shape"), "shape"),
                        parse_dtype(fields.string("dtype", "a dtype such as \"bf16\""), "dtype"),
                        fields.integer("rows", 1, kMaxBytes)};
    if (!by_name_.emplace(tensor.name, out_.tensors.size()).second)
      throw InputError(fmt::format("tensor: expected each name once, found {} again",
                                   reshard::quoted(tensor.name, 200)));
    out_.tensors.push_back(std::move(tensor));
  }

  void read_part(TraceFields& fields) {
    DigestPart part;
    std::string side = fields.string("side", "\"from\" or \"to\"");
    auto known = std::find_if(out_.sides.begin(), out_.sides.end(),
                              [&](DigestSide each) { return text(each) == side; });
    if (known == out_.sides.end())
      throw InputError(
          fmt::format("side: expected one of \"sides\", found {}", reshard::quoted(side)));
    part.side = *known;
    part.buffer = fields.string("buffer", "the name of a buffer");
    std::string name = fields.string("tensor", "the name of a tensor");
    auto found = by_name_.find(name);
    if (found == by_name_.end())
      throw InputError(
          fmt::format("tensor: expected one of \"tensors\", found {}", reshard::quoted(name, 200)));
    part.tensor = static_cast<std::int32_t>(found->second);
    const DigestTensor& tensor = out_.tensors[found->second];
    part.box = parse_box(fields.string("box", "a box such as \"0:4,:\""), tensor.shape, "box");
    if (part.box.empty()) throw InputError("box: expected one with elements, found none");
    part.time = static_cast<std::int32_t>(fields.integer("time", 0, INT32_MAX, 0));
    part.ranks = fields.ranks("ranks");
    std::sort(part.ranks.begin(), part.ranks.end());
    ranks_ += part.ranks.size();
    if (ranks_ > kMostRankParts)
      throw InputError(fmt::format("ranks: expected at most {} in all parts together, found more",
                                   kMostRankParts));
    BlockDigests digests;
    digests.blocks = read_digests(fields, "digests", block_count(part.box, tensor.rows));
    digests.heads = fields.has("heads")
                        ? read_digests(fields, "heads", block_count(part.box, tensor.rows))
                        : digests.blocks;
    part.digests = std::make_shared<const BlockDigests>(std::move(digests));
    out_.parts.push_back(std::move(part));
  }

  std::vector<std::uint64_t> read_digests(TraceFields& fields, std::string_view key,
                                          std::int64_t count) {
    std::string what = fmt::format("a list of {} digests, one per block", count);
    const TraceJson& values = list(fields, key, what);
    if (values.size() != to_index(count)) fields.fail(key, what, values);
    std::vector<std::uint64_t> out;
    for (const TraceJson& value : values) {
      std::optional<std::uint64_t> digest;
      if (value.is_string()) digest = parse_digest64(value.get_ref<const std::string&>());
      if (!digest) fields.fail(key, "digests of 16 hex digits", value);
      out.push_back(*digest);
    }
    return out;
  }

  std::string_view text_;
  const std::string& place_;
  DigestFile out_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::size_t ranks_ = 0;
};

std::string quoted_json(const std::string& text) {
  return TraceJson(text).dump(-1, ' ', false, TraceJson::error_handler_t::replace);
}

std::string digests_text(const std::vector<std::uint64_t>& digests) {
  std::string out = "[";
  for (std::uint64_t digest : digests)
    out += fmt::format("{}\"{:016x}\"", out.size() == 1 ? "" : ",", digest);
  return out + "]";
}

std::string part_text(const DigestPart& part, const DigestTensor& tensor) {
  std::string box = element_text({"", tensor.shape, tensor.dtype, {}}, part.box);
  std::string out = fmt::format(
      "{{\"side\": \"{}\", \"ranks\": \"{}\", \"buffer\": {}, \"tensor\": {}, \"box\": \"{}\"",
      text(part.side), ranks_text(part.ranks), quoted_json(part.buffer), quoted_json(tensor.name),
      box.substr(1, box.size() - 2));
  if (part.time > 0) out += fmt::format(", \"time\": {}", part.time);
  out += fmt::format(", \"digests\": {}", digests_text(part.digests->blocks));
  if (part.digests->heads != part.digests->blocks)
    out += fmt::format(", \"heads\": {}", digests_text(part.digests->heads));
  return out + "}";
}

}  // namespace

DigestFile read_digest_file(std::string_view text, const std::string& place) {
  return Reader(text, place).read();
}

std::string write_digest_file(const DigestFile& file) {
  std::string out = "{\"reshard_digest\": 1, \"sides\": [";
  for (DigestSide side : file.sides)
    out += fmt::format("{}\"{}\"", side == file.sides.front() ? "" : ", ", text(side));
  out += "],\n\"tensors\": [";
  const char* between = "\n";
  for (const DigestTensor& tensor : file.tensors) {
    out += fmt::format("{}{{\"tensor\": {}, \"shape\": [{}], \"dtype\": \"{}\", \"rows\": {}}}",
                       between, quoted_json(tensor.name), text(tensor.shape), text(tensor.dtype),
                       tensor.rows);
    between = ",\n";
  }
  out += "],\n\"parts\": [";
  between = "\n";
  for (const DigestPart& part : file.parts) {
    out += between + part_text(part, file.tensors[to_index(part.tensor)]);
    between = ",\n";
  }
  return out + "]}\n";
}

}  // namespace reshard::sim
