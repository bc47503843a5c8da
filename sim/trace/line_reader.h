// SPDX-License-Identifier: BSD-3-Clause
// Reads untrusted text line by line, and a line as one JSON object field by field. A field that is
// missing, of the wrong type, out of range, given twice or unknown is an InputError that names
// FILE:LINE and the field. Memory is bounded by one line: a longer file without a newline is
// refused when its first line passes 64 MiB.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

class LineReader {
 public:
  // `file` names the stream in messages. Keeps a reference to the stream.
  LineReader(std::istream& in, std::string file);

  // Reads the next line without its end ("\n" or "\r\n"); false at the end of the stream. Throws
  // InputError "FILE:LINE: ..." for a line above 64 MiB and if reading the stream fails.
  bool next(std::string& line);
  // The text that was read ahead; before the first next(), the first 64 KiB of the file. Empty at
  // the end.
  std::string_view ahead();
  // Number of the line that next() returned last, from 1.
  std::int64_t line_number() const { return line_number_; }
  std::string place() const;  // "FILE:LINE" of that line

 private:
  bool refill();

  std::istream& in_;
  std::string file_;
  std::vector<char> block_;
  std::size_t begin_ = 0, end_ = 0;  // unread part of block_
  std::int64_t line_number_ = 0;
};

using TraceJson = nlohmann::json;

// Calls read(stream, its name in messages) with a file, or with standard input for "-"; either can
// be compressed with gzip. Throws InputError for a file that is missing, unreadable or a
// directory; `what` describes what was expected.
void with_file(const std::string& path, std::string_view what,
               const std::function<void(std::istream&, const std::string&)>& read);

// One object from one line. Refuses anything else, nesting deeper than a trace has, duplicate keys,
// and more than 2^20 + 64 values, before they are held in memory.
TraceJson parse_json_line(const std::string& line, const std::string& place);

class TraceFields {
 public:
  // `place` is "FILE:LINE". Keeps references to both.
  TraceFields(const TraceJson& object, const std::string& place);

  bool has(std::string_view key) const { return at(key) < fields_.size(); }
  // The value, which is marked as read; null if there is none.
  const TraceJson* find(std::string_view key);
  const TraceJson& required(std::string_view key, std::string_view what);

  std::string string(std::string_view key, std::string_view what);
  std::optional<std::string> optional_string(std::string_view key, std::string_view what);
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high);
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high,
                       std::int64_t absent);
  bool boolean(std::string_view key, bool absent);
  // A number from `low` / 10^6 to 1, in millionths, rounded.
  std::int64_t millionths(std::string_view key, std::int64_t low);
  // "0-7" or [0, 1, 2]: at least one rank, each once.
  std::vector<Rank> ranks(std::string_view key);
  // "32,8192" or [32, 8192], as text.
  std::string shape(std::string_view key);
  // A string, or an integer as its decimal text.
  std::string id_of(const TraceJson& value, std::string_view field) const;

  // Throws for the first field, by name, that was not read.
  void refuse_others(std::string_view of) const;
  // "FILE:LINE: KEY: expected WHAT, found VALUE".
  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         const TraceJson& found) const;

 private:
  std::int64_t integer_of(const TraceJson& value, std::string_view key, std::int64_t low,
                          std::int64_t high) const;

  struct Field {
    std::string_view key;
    const TraceJson* value;
    bool read;
  };
  std::size_t at(std::string_view key) const;  // fields_.size() if there is none

  const std::string& place_;
  std::vector<Field> fields_;  // ascending by key
};

}  // namespace reshard::sim
