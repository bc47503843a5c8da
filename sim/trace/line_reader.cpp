// SPDX-License-Identifier: BSD-3-Clause
#include "sim/trace/line_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
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

// Builds the value of a line while the parser reads it, so that what a trace does not have is
// refused before it is held. Its events answer true: go on.
class LineBuilder final : public TraceJson::json_sax_t {
 public:
  explicit LineBuilder(const std::string& place) : place_(place) {}

  TraceJson take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(TraceJson::binary_t& value) override { return put(std::move(value)); }
  bool start_object(std::size_t) override { return open(TraceJson::object()); }
  bool start_array(std::size_t) override { return open(TraceJson::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& key) override {
    auto [field, fresh] = open_.back()->emplace(std::move(key), nullptr);
    if (!fresh)
      throw InputError(fmt::format("{}: expected each field once, found {} twice", place_,
                                   reshard::quoted(field.key())));
    field_ = &*field;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const TraceJson::exception& error) override {
    if (auto* text = dynamic_cast<const TraceJson::parse_error*>(&error)) throw *text;
    throw InputError(
        fmt::format("{}: expected one JSON object, found a number beyond any range", place_));
  }

 private:
  TraceJson& add(TraceJson&& value) {
    if (++values_ > kMaxJsonValues)
      throw InputError(
          fmt::format("{}: expected at most {} values, found more", place_, kMaxJsonValues));
    TraceJson* in = open_.empty() ? &root_ : open_.back();
    if (in->is_array()) return in->emplace_back(std::move(value));
    return *(open_.empty() ? in : field_) = std::move(value);
  }

  bool put(TraceJson&& value) {
    add(std::move(value));
    return true;
  }

  bool open(TraceJson&& container) {
    if (open_.size() >= kMaxJsonNesting)
      throw InputError(fmt::format("{}: expected at most {} levels of nesting, found more", place_,
                                   kMaxJsonNesting));
    open_.push_back(&add(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& place_;
  TraceJson root_;
  TraceJson* field_ = nullptr;    // of the key that was read last
  std::vector<TraceJson*> open_;  // the containers around it: none moves before it is closed
  std::int64_t values_ = 0;
};

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
  LineBuilder builder(place);
  try {
    TraceJson::sax_parse(line, &builder);
  } catch (const TraceJson::parse_error& error) {
    std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, line.size());
    std::string found = at >= line.size() ? "the end of the line"
                                          : reshard::quoted(std::string_view(line).substr(at));
    throw InputError(fmt::format("{}: expected one JSON object, found no JSON at byte {}: {}",
                                 place, at + 1, found));
  }
  TraceJson json = builder.take();
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
  // Unsigned values above int64 would turn negative.
  bool fits = value.is_number_integer() &&
              !(value.is_number_unsigned() &&
                value.get<std::uint64_t>() >
                    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high)
    fail(key, fmt::format("an integer from {} to {}", low, high), value);
  return value.get<std::int64_t>();
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

}  // namespace reshard::sim
