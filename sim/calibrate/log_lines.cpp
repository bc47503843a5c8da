// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/log_lines.h"

#include <algorithm>
#include <array>

#include "core/base/cursor.h"
#include "sim/machine_files/matrix_words.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxPrefix = 256, kMaxPrefixes = 4096;
constexpr char kTime = '\1';

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether `text` contains `form`, in which '0' matches any digit.
bool has_form(std::string_view text, std::string_view form) {
  auto fits = [&](std::size_t at) {
    for (std::size_t i = 0; i < form.size(); ++i)
      if (form[i] == '0' ? !is_digit(text[at + i]) : text[at + i] != form[i]) return false;
    return true;
  };
  for (std::size_t at = 0; at + form.size() <= text.size(); ++at)
    if (fits(at)) return true;
  return false;
}

// Length of the date or time of day at the start of a text; 0 if there is none.
std::size_t time_length(std::string_view text) {
  if (text.empty() || !is_digit(text[0])) return 0;
  std::size_t end = std::min(text.find_first_not_of("0123456789:.,+-TZ"), text.size());
  std::string_view word = text.substr(0, end);
  return has_form(word, "0000-00-00") || has_form(word, "00:00:00") ? end : 0;
}

// The start of a line, with each timestamp replaced by one character.
struct Head {
  std::string shape;
  std::vector<std::size_t> ends;  // by character of `shape`: the offset in the line that follows it
};

Head head_of(std::string_view line) {
  Head out;
  for (std::size_t at = 0; at < std::min(line.size(), kMaxPrefix);) {
    bool inside = at > 0 && is_digit(line[at - 1]);
    std::size_t time = inside ? 0 : time_length(line.substr(at, kMaxPrefix));
    out.shape += time > 0 ? kTime : line[at];
    at += std::max<std::size_t>(1, time);
    out.ends.push_back(at);
  }
  return out;
}

// Whether these are the words of a line that starts a run's output.
bool is_header(const std::vector<std::string_view>& words) {
  auto is = [&](std::size_t at, std::string_view word) {
    return at < words.size() && words[at] == word;
  };
  bool numbered = words.size() > 1 && whole_number(words[1]);
  if (is(0, "nThread")) return numbered && is(2, "nGpus");
  if (is(0, "Rank")) return numbered && (is(2, "Group") || is(2, "Pid"));
  if (is(0, "Collective")) return is(1, "test");
  if (is(0, "nccl-tests")) return is(1, "version");
  if (is(0, "size")) return is(1, "count");
  return is(0, "Using") && is(1, "devices");
}

// Offset at which a header begins in a line, including its '#'; npos if there is none.
std::size_t header_begin(std::string_view line) {
  constexpr std::array<std::string_view, 6> kWords{"nThread",    "Rank", "Collective",
                                                   "nccl-tests", "size", "Using"};
  for (std::string_view word : kWords)
    for (std::size_t at = line.find(word); at != std::string_view::npos && at < 2 * kMaxPrefix;
         at = line.find(word, at + 1)) {
      if (!is_header(words_of(line.substr(at, kMaxPrefix)))) continue;
      std::size_t mark = at;
      while (mark > 0 && (line[mark - 1] == ' ' || line[mark - 1] == '\t')) --mark;
      if (mark > 0 && line[mark - 1] == '#') return line.find_last_not_of('#', mark - 1) + 1;
      if (mark < at || at == 0) return mark;
    }
  return std::string_view::npos;
}

std::string plain(std::string_view line) {
  return line.find('\x1b') == std::string_view::npos ? std::string(line) : without_escapes(line);
}

std::string_view without_end_blanks(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

}  // namespace

std::vector<std::string_view> header_words(std::string_view line) {
  std::size_t begin = std::min(line.find_first_not_of("# \t"), line.size());
  std::vector<std::string_view> words = words_of(line.substr(begin));
  if (!is_header(words)) words.clear();
  return words;
}

LogLines::LogLines(std::string_view text) : rest_(after_byte_order_mark(text)) {
  for (std::string_view all = rest_; !all.empty() && prefixes_.size() < kMaxPrefixes;) {
    std::string line = plain(take_line(all));
    std::size_t begin = header_begin(line);
    if (begin == std::string::npos || begin > kMaxPrefix) continue;
    std::string_view prefix = without_end_blanks(std::string_view(line).substr(0, begin));
    if (prefix.empty()) continue;
    std::string shape = head_of(prefix).shape;
    lengths_.insert(shape.size());
    prefixes_.try_emplace(std::move(shape), static_cast<std::int32_t>(prefixes_.size()) + 1);
  }
}

std::optional<LogLines::Line> LogLines::next() {
  if (rest_.empty()) return std::nullopt;
  Line out{++number_, 0, plain(take_line(rest_))};
  if (prefixes_.empty()) return out;
  Head head = head_of(out.text);
  for (auto length = lengths_.rbegin(); length != lengths_.rend(); ++length) {
    if (*length > head.shape.size()) continue;
    auto prefix = prefixes_.find(std::string_view(head.shape).substr(0, *length));
    if (prefix == prefixes_.end()) continue;
    out.process = prefix->second;
    out.text.erase(0, head.ends[*length - 1]);
    break;
  }
  return out;
}

}  // namespace reshard::sim
