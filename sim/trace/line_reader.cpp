// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/line_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/mesh.h"

namespace reshard::sim {
namespace {

std::string shown(const TraceJson& value) {
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return "an object";
  if (value.is_string()) return reshard::quoted(value.get_ref<const std::string&>());
  return value.dump();
}

// Sorts them.
void refuse_twice(std::span<std::string> keys, const std::string& place) {
  std::sort(keys.begin(), keys.end());
  auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end())
    throw InputError(fmt::format("{}: expected each field once, found {} twice", place,
                                 reshard::quoted(*twice)));
}

}  // namespace

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
  if (line_number_ == 0) begin_ = end_ - behind_mark({block_.data(), end_}).size();
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
  std::int64_t values = 0;
  std::vector<std::string> keys;    // of the objects that are open, one behind the other
  std::vector<std::size_t> opened;  // where each of them begins in `keys`
  keys.reserve(16);                 // of an operation most
  auto watch = [&](int depth, TraceJson::parse_event_t event, TraceJson& parsed) {
    if (depth >= kMaxJsonNesting && (event == TraceJson::parse_event_t::array_start ||
                                     event == TraceJson::parse_event_t::object_start))
      throw InputError(fmt::format("{}: expected at most {} levels of nesting, found more", place,
                                   kMaxJsonNesting));
    if (++values > kMaxJsonValues)
      throw InputError(
          fmt::format("{}: expected at most {} values, found more", place, kMaxJsonValues));
    if (event == TraceJson::parse_event_t::object_start) opened.push_back(keys.size());
    if (event == TraceJson::parse_event_t::key)
      keys.push_back(parsed.get_ref<const std::string&>());
    if (event == TraceJson::parse_event_t::object_end) {
      refuse_twice({keys.begin() + static_cast<std::ptrdiff_t>(opened.back()), keys.end()}, place);
      keys.resize(opened.back());
      opened.pop_back();
    }
    return true;
  };
  TraceJson json;
  try {
    json = TraceJson::parse(line, watch);
  } catch (const TraceJson::parse_error& error) {
    std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, line.size());
    std::string found = at >= line.size() ? "the end of the line"
                                          : reshard::quoted(std::string_view(line).substr(at));
    throw InputError(fmt::format("{}: expected one JSON object, found no JSON at byte {}: {}",
                                 place, at + 1, found));
  } catch (const TraceJson::exception&) {
    throw InputError(
        fmt::format("{}: expected one JSON object, found a number beyond any range", place));
  }
  if (!json.is_object())
    throw InputError(fmt::format("{}: expected one JSON object, found {}", place, shown(json)));
  return json;
}

void TraceFields::fail(std::string_view key, std::string_view expected,
                       const TraceJson& found) const {
  throw InputError(
      fmt::format("{}: {}: expected {}, found {}", place_, key, expected, shown(found)));
}

const TraceJson* TraceFields::find(const char* key) {
  read_.push_back(key);
  auto it = object_.find(key);
  return it == object_.end() ? nullptr : &*it;
}

const TraceJson& TraceFields::required(const char* key, std::string_view what) {
  const TraceJson* value = find(key);
  if (value == nullptr)
    throw InputError(fmt::format("{}: {}: expected {}, found no such field", place_, key, what));
  return *value;
}

std::string TraceFields::string(const char* key, std::string_view what) {
  const TraceJson& value = required(key, what);
  if (!value.is_string()) fail(key, what, value);
  return value.get<std::string>();
}

std::optional<std::string> TraceFields::optional_string(const char* key, std::string_view what) {
  const TraceJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, what, *value);
  return value->get<std::string>();
}

std::int64_t TraceFields::integer_of(const TraceJson& value, std::string_view key, std::int64_t low,
                                     std::int64_t high) const {
  // Unsigned values above int64 would turn negative.
  bool fits = value.is_number_integer() &&
              !(value.is_number_unsigned() &&
                value.get<std::uint64_t>() >
                    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high)
    fail(key, fmt::format("an integer from {} to {}", low, high), value);
  return value.get<std::int64_t>();
}

std::int64_t TraceFields::integer(const char* key, std::int64_t low, std::int64_t high) {
  const TraceJson* value = find(key);
  if (value == nullptr) required(key, fmt::format("an integer from {} to {}", low, high));
  return integer_of(*value, key, low, high);
}

std::int64_t TraceFields::integer(const char* key, std::int64_t low, std::int64_t high,
                                  std::int64_t absent) {
  const TraceJson* value = find(key);
  return value == nullptr ? absent : integer_of(*value, key, low, high);
}

bool TraceFields::boolean(const char* key, bool absent) {
  const TraceJson* value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) fail(key, "true or false", *value);
  return value->get<bool>();
}

std::int64_t TraceFields::millionths(const char* key, std::int64_t low) {
  const TraceJson& value = required(key, "a number up to 1 such as 0.5");
  double number = value.is_number() ? value.get<double>() : -1;
  auto out = number >= 0 && number <= 1 ? static_cast<std::int64_t>(number * 1e6 + 0.5) : -1;
  if (out < low)
    fail(key, low > 0 ? "a number above 0 and up to 1" : "a number from 0 to 1", value);
  return out;
}

std::vector<Rank> TraceFields::ranks(const char* key) {
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

std::string TraceFields::shape(const char* key) {
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
  for (const auto& [key, value] : object_.items())
    if (std::find(read_.begin(), read_.end(), key) == read_.end())
      throw InputError(fmt::format("{}: {}: expected a field of {}, found an unknown one", place_,
                                   reshard::quoted(key), of));
}

}  // namespace reshard::sim
