// SPDX-License-Identifier: BSD-3-Clause
// Reads the text of a block of a fused buffer: "q:4 k:1 v:1 x128", "lm_head pad64".
#include <charconv>
#include <optional>

#include "core/base/cursor.h"
#include "core/stored/generators.h"

namespace reshard {
namespace {

// The number that follows `prefix`, if the word consists of the two.
std::optional<std::int64_t> number_after(std::string_view word, std::string_view prefix) {
  std::int64_t value = 0;
  if (!word.starts_with(prefix)) return std::nullopt;
  word.remove_prefix(prefix.size());
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size() || value < 1 ||
      value > kMaxBytes / 2)
    return std::nullopt;
  return value;
}

}  // namespace

FusedBlock parse_fused_block(std::string_view text, const ModelTensors& tensors,
                             std::string_view field) {
  FusedBlock out;
  bool has_units = false;
  Cursor whole(text, field);
  for (std::string_view rest = text; !rest.empty();) {
    std::size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
    if (out.sections.empty() || tensors.find(word.substr(0, word.rfind(':'))) != nullptr) {
      std::size_t colon = tensors.find(word) != nullptr ? std::string_view::npos : word.rfind(':');
      auto units = colon == std::string_view::npos ? std::optional<std::int64_t>(1)
                                                   : number_after(word.substr(colon), ":");
      if (!units) whole.fail("sections such as 'q_proj:4 k_proj:1 v_proj:1 x128'");
      has_units = has_units || colon != std::string_view::npos;
      out.sections.push_back({tensors.at(word.substr(0, colon), field), *units});
    } else if (auto unit = number_after(word, "x")) {
      out.unit_rows = *unit;
    } else if (auto pad = number_after(word, "pad")) {
      out.pad = *pad;
    } else if (word == "repeat") {
      out.repeat = true;
    } else {
      whole.fail("tensors of earlier lines, then 'x128', 'pad64' or 'repeat'");
    }
  }
  if (out.sections.empty()) whole.fail("a tensor of an earlier line");
  bool one = out.sections.size() == 1 && !has_units;
  if ((!one && out.unit_rows == 0) || (out.repeat && (!one || out.unit_rows == 0)))
    whole.fail(out.repeat ? "one tensor and the rows of a block, such as 'k_proj x128 repeat'"
                          : "the rows of a unit, such as 'x128'");
  return out;
}

}  // namespace reshard
