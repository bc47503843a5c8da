// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"
#include "core/layout/mesh.h"
#include "sim/inputs/gzip_input.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {

LineReader::LineReader(std::istream& in, std::string file)
    : in_(in), file_(std::move(file)), block_(std::size_t{1} << 16) {}

bool LineReader::refill() {
  begin_ = end_ = 0;
  if (!in_.good()) return false;
  in_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
  end_ = to_index(in_.gcount());
  if (in_.bad())
    throw InputError(
        fmt::format("{}: expected a readable file, found an error while reading", place()));
  if (line_number_ == 0) begin_ = end_ - after_byte_order_mark({block_.data(), end_}).size();
  return end_ > 0;
}

std::string LineReader::place() const { return fmt::format("{}:{}", file_, line_number_); }

std::string_view LineReader::ahead() {
  if (begin_ == end_) refill();
  return {block_.data() + begin_, end_ - begin_};
}

bool LineReader::next(std::string& line) {
  line.clear();
  if (begin_ == end_ && !refill()) return false;
  ++line_number_;
  for (;;) {
    const char* from = block_.data() + begin_;
    const void* newline = std::memchr(from, '\n', end_ - begin_);
    std::size_t count =
        newline == nullptr ? end_ - begin_ : to_index(static_cast<const char*>(newline) - from);
    if (line.size() + count > kMaxLineBytes)
      throw InputError(
          fmt::format("{}: expected lines of at most 64 MiB, found a longer one", place()));
    line.append(from, count);
    begin_ += count + (newline == nullptr ? 0 : 1);
    if (newline != nullptr || !refill()) break;
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

TraceJson parse_json_line(const std::string& line, const std::string& place) {
  TraceJson json = read_json<TraceJson>(line, place, kJsonLine);
  if (!json.is_object())
    throw InputError(fmt::format("{}: expected one JSON object, found {}", place, shown(json)));
  return json;
}

TraceFields::TraceFields(const TraceJson& object, const std::string& place) : place_(place) {
  fields_.reserve(object.size());
  for (const auto& [key, value] : object.get_ref<const TraceJson::object_t&>())
    fields_.push_back({key, &value, false});
}

std::size_t TraceFields::at(std::string_view key) const {
  auto field = std::lower_bound(
      fields_.begin(), fields_.end(), key,
      [](const Field& each, std::string_view wanted) { return each.key < wanted; });
  bool found = field != fields_.end() && field->key == key;
  return found ? to_index(field - fields_.begin()) : fields_.size();
}

void TraceFields::fail(std::string_view key, std::string_view expected,
                       const TraceJson& found) const {
  throw InputError(
      fmt::format("{}: {}: expected {}, found {}", place_, key, expected, shown(found)));
}

const TraceJson* TraceFields::find(std::string_view key) {
  std::size_t field = at(key);
  if (field == fields_.size()) return nullptr;
  fields_[field].read = true;
  return fields_[field].value;
}

const TraceJson& TraceFields::required(std::string_view key, std::string_view what) {
  const TraceJson* value = find(key);
  if (value == nullptr)
    throw InputError(fmt::format("{}: {}: expected {}, found no such field", place_, key, what));
  return *value;
}

std::string TraceFields::string(std::string_view key, std::string_view what) {
  const TraceJson& value = required(key, what);
  if (!value.is_string()) fail(key, what, value);
  return value.get<std::string>();
}

std::optional<std::string> TraceFields::optional_string(std::string_view key,
                                                        std::string_view what) {
  const TraceJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, what, *value);
  return value->get<std::string>();
}

std::int64_t TraceFields::integer_of(const TraceJson& value, std::string_view key, std::int64_t low,
                                     std::int64_t high) const {
  std::optional<std::int64_t> found = integer_in(value, low, high);
  if (!found) fail(key, fmt::format("an integer from {} to {}", low, high), value);
  return *found;
}

std::int64_t TraceFields::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const TraceJson* value = find(key);
  if (value == nullptr) required(key, fmt::format("an integer from {} to {}", low, high));
  return integer_of(*value, key, low, high);
}

std::int64_t TraceFields::integer(std::string_view key, std::int64_t low, std::int64_t high,
                                  std::int64_t absent) {
  const TraceJson* value = find(key);
  return value == nullptr ? absent : integer_of(*value, key, low, high);
}

bool TraceFields::boolean(std::string_view key, bool absent) {
  const TraceJson* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) fail(key, "true or false", *value);
  return value->get<bool>();
}

std::int64_t TraceFields::millionths(std::string_view key, std::int64_t low) {
  const TraceJson& value = required(key, "a number up to 1 such as 0.5");
  double number = value.is_number() ? value.get<double>() : -1;
  auto out = number >= 0 && number <= 1 ? static_cast<std::int64_t>(number * 1e6 + 0.5) : -1;
  if (out < low)
    fail(key, low > 0 ? "a number above 0 and up to 1" : "a number from 0 to 1", value);
  return out;
}

std::vector<Rank> TraceFields::ranks(std::string_view key) {
  constexpr std::string_view kWhat = "ranks such as \"0-7\" or [0, 1, 2]";
  const TraceJson& value = required(key, kWhat);
  std::vector<Rank> ranks;
  if (value.is_string()) {
    try {
      ranks = parse_ranks(value.get_ref<const std::string&>(), key);
    } catch (const InputError& error) {
      throw error.in(place_);
    }
  } else if (value.is_array() && !value.empty()) {
    for (const TraceJson& rank : value)
      ranks.push_back(Rank{static_cast<std::int32_t>(integer_of(rank, key, 0, kMaxRanks - 1))});
  } else {
    fail(key, kWhat, value);
  }
  std::vector<Rank> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw InputError(fmt::format("{}: {}: expected each rank once, found rank {} twice", place_,
                                 key, to_int(*twice)));
  return ranks;
}

std::string TraceFields::shape(std::string_view key) {
  constexpr std::string_view kWhat = "a shape such as [32, 8192] or \"32,8192\"";
  const TraceJson& value = required(key, kWhat);
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array() || value.size() > 64) fail(key, kWhat, value);
  std::string out;
  for (const TraceJson& extent : value)
    out += fmt::format("{}{}", out.empty() ? "" : ",",
                       integer_of(extent, key, 0, std::numeric_limits<std::int64_t>::max()));
  return out;
}

std::string TraceFields::id_of(const TraceJson& value, std::string_view field) const {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_integer()) fail(field, "a string or an integer", value);
  return value.dump();
}

void TraceFields::refuse_others(std::string_view of) const {
  for (const Field& field : fields_)
    if (!field.read)
      throw InputError(fmt::format("{}: {}: expected a field of {}, found an unknown one", place_,
                                   reshard::quoted(field.key), of));
}

void with_file(const std::string& path, std::string_view what,
               const std::function<void(std::istream&, const std::string&)>& read) {
  auto unpacked = [&](std::istream& in, const std::string& name) {
    with_unpacked(in, name, [&](std::istream& text) { read(text, name); });
  };
  if (path == "-") return unpacked(std::cin, "<stdin>");
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  std::string shown = shown_path(path);
  if (status.type() == std::filesystem::file_type::not_found)
    throw InputError(fmt::format("{}: expected {}, found no such file", shown, what));
  if (status.type() == std::filesystem::file_type::directory)
    throw InputError(fmt::format("{}: expected {}, found a directory", shown, what));
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw InputError(
        fmt::format("{}: expected a readable file, found: {}", shown, std::strerror(errno)));
  unpacked(file, shown);
}

}  // namespace reshard::sim
