// SPDX-License-Identifier: BSD-3-Clause
// Shared by the readers of measured collectives: the names of collectives, and notes on rows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "sim/calibrate/measured.h"

namespace reshard::sim {

struct CollectiveName {
  std::string_view word;
  std::optional<CollectiveKind> kind;  // none: unsupported
};
// The first known name that occurs in a text, ignoring case, underscores and hyphens; null if there
// is none.
const CollectiveName* name_in(std::string_view text);
// The same for the last component of a path.
const CollectiveName* name_of_file(const std::string& path);
// The same for the nccl-tests program in a line, "./build/all_reduce_perf -b 8"; null if the line
// names no such program.
const CollectiveName* program_in(std::string_view line);

// Notes on rows, one per reason: "log.txt:12: 3 rows without a time skipped".
class RowNotes {
 public:
  void add(const std::string& reason, const std::string& place) {
    auto [entry, is_new] = rows_.try_emplace(reason, place, 0);
    ++entry->second.second;
  }
  std::vector<std::string> texts() const;

 private:
  std::map<std::string, std::pair<std::string, std::int64_t>> rows_;  // reason -> first place,
                                                                      // number of rows
};

MeasuredTable read_nccl_tests_text(std::string_view text, const std::string& file);
MeasuredTable read_nccl_tests_json(const nlohmann::json& whole, const std::string& file);
MeasuredTable read_inspector(std::string_view text, const std::string& file);

// For a file without measurements: the error states which formats are read and what the file looks
// like.
[[noreturn]] void refuse_other(std::string_view text, const std::string& file);

// Field of a JSON object. Throws InputError "PLACE: expected 'KEY', found none".
const nlohmann::json& member(const nlohmann::json& of, const char* key, const std::string& place);
double number(const nlohmann::json& of, const std::string& place);
std::int64_t picoseconds(double us);  // at least 1

}  // namespace reshard::sim
