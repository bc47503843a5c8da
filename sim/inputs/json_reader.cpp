// SPDX-License-Identifier: BSD-3-Clause
#include "sim/inputs/json_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::sim {
namespace {

// Builds the value from the parser's events. An event returns true to continue.
template <class Json>
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::string& place, const JsonLimits& limits) : place_(place), limits_(limits) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(typename Json::binary_t& value) override { return put(std::move(value)); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& key) override {
    Json& object = *open_.back();
    if (object.size() >= limits_.fields)
      refuse(fmt::format("at most {} fields in an object", limits_.fields), "more");
    auto [field, fresh] = object.emplace(std::move(key), nullptr);
    if (!fresh) refuse("each field once", reshard::quoted(field.key()) + " twice");
    field_ = &*field;
    return true;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    if (const auto* text = dynamic_cast<const nlohmann::detail::parse_error*>(&error)) throw *text;
    refuse("one JSON object", "a number out of range");
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw InputError(fmt::format("{}: expected {}, found {}", place_, expected, found));
  }

  Json& add(Json&& value) {
    if (++values_ > limits_.values)
      refuse(fmt::format("at most {} values", limits_.values), "more");
    Json* in = open_.empty() ? &root_ : open_.back();
    if (in->is_array()) return in->emplace_back(std::move(value));
    return *(open_.empty() ? in : field_) = std::move(value);
  }

  bool put(Json&& value) {
    add(std::move(value));
    return true;
  }

  bool open(Json&& container) {
    if (open_.size() >= static_cast<std::size_t>(limits_.levels))
      refuse(fmt::format("at most {} levels of nesting", limits_.levels), "more");
    open_.push_back(&add(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& place_;
  const JsonLimits& limits_;
  Json root_;
  Json* field_ = nullptr;    // of the last key read
  std::vector<Json*> open_;  // the enclosing containers; none moves before it is closed
  std::int64_t values_ = 0;
};

template <class Json>
Json parsed(std::string_view text, const std::string& place, const JsonLimits& limits) {
  Builder<Json> builder(place, limits);
  Json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace

template <class Json>
Json read_json(std::string_view text, const std::string& place, const JsonLimits& limits) {
  try {
    return parsed<Json>(text, place, limits);
  } catch (const nlohmann::detail::parse_error& error) {
    std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    std::string found =
        at >= text.size() ? "the end of the line" : reshard::quoted(text.substr(at));
    throw InputError(fmt::format("{}: expected one JSON object, found no JSON at byte {}: {}",
                                 place, at + 1, found));
  }
}

template <class Json>
Json read_json_or_other(std::string_view text, const std::string& place, const JsonLimits& limits) {
  try {
    return parsed<Json>(text, place, limits);
  } catch (const nlohmann::detail::parse_error&) {
    return Json(Json::value_t::discarded);
  }
}

template nlohmann::json read_json(std::string_view, const std::string&, const JsonLimits&);
template nlohmann::json read_json_or_other(std::string_view, const std::string&, const JsonLimits&);
template nlohmann::ordered_json read_json_or_other(std::string_view, const std::string&,
                                                   const JsonLimits&);

std::string shown(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return "an object";
  if (value.is_string()) return reshard::quoted(value.get_ref<const std::string&>());
  return value.dump();
}

}  // namespace reshard::sim
