// SPDX-License-Identifier: BSD-3-Clause
// Line numbers and attribute values of XML elements, with error messages that name their place.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <pugixml.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/ids.h"
#include "core/base/units.h"

namespace reshard::sim {

class XmlPlaces {
 protected:
  static constexpr std::int64_t kMaxRate = 1'000'000'000'000'000;  // sums of such rates fit 64 bits

  // Both must outlive this object.
  XmlPlaces(std::string_view text, const std::string& file) : text_(text), file_(file) {
    for (std::size_t i = 0; i < text_.size(); ++i)
      if (text_[i] == '\n') line_ends_.push_back(i);
  }

  std::int64_t line_at(std::size_t offset) const {
    return std::lower_bound(line_ends_.begin(), line_ends_.end(), offset) - line_ends_.begin() + 1;
  }
  std::string place(pugi::xml_node node) const {
    std::ptrdiff_t offset = std::max<std::ptrdiff_t>(0, node.offset_debug());
    return fmt::format("{}:{}", file_, line_at(to_index(offset)));
  }
  static std::string clean(std::string_view word) {
    std::string out = quoted(word);
    return out.substr(1, out.size() - 2);
  }
  [[noreturn]] void fail(pugi::xml_node node, std::string_view expected,
                         const std::string& found) const {
    throw InputError(fmt::format("{}: expected {}, found {}", place(node), expected, found));
  }

  static std::optional<std::int64_t> number(std::string_view word) {
    std::int64_t value = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return value;
  }
  std::int64_t integer(pugi::xml_node node, const char* name, std::int64_t low,
                       std::int64_t high) const {
    std::string_view word = node.attribute(name).value();
    std::optional<std::int64_t> value = number(word);
    if (!value || *value < low || *value > high)
      fail(node, fmt::format("<{}> with {}, from {} to {}", node.name(), name, low, high),
           node.attribute(name) ? quoted(word) : "none");
    return *value;
  }
  std::optional<std::int64_t> own_rate(pugi::xml_node node) const {
    pugi::xml_attribute rate = node.attribute("reshard_rate");
    if (!rate) return std::nullopt;
    std::int64_t value = parse_bytes_per_s(rate.value(), place(node) + ": reshard_rate");
    if (value > kMaxRate) fail(node, "a reshard_rate of at most 1e15 B/s", quoted(rate.value()));
    return value;
  }

  std::string_view text_;
  const std::string& file_;

 private:
  std::vector<std::size_t> line_ends_;
};

}  // namespace reshard::sim
