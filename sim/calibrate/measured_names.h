// SPDX-License-Identifier: BSD-3-Clause
// What the readers of measured collectives share: names of collectives, rows that are passed over.
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
  std::optional<CollectiveKind> kind;  // none: not ours
};
// The first of the names in a text, whatever its case and underscores; null where there is none.
const CollectiveName* name_in(std::string_view text);
// Of the file that a path names.
const CollectiveName* name_of_file(const std::string& path);
// By the program in a line, "./build/all_reduce_perf -b 8"; null where no program of nccl-tests is
// named.
const CollectiveName* program_in(std::string_view line);

// What is said of rows, once per reason: "log.txt:12: 3 rows with wrong values (#wrong) are passed
// over".
class RowNotes {
 public:
  void add(const std::string& reason, const std::string& place) {
    auto [entry, is_new] = rows_.try_emplace(reason, place, 0);
    ++entry->second.second;
  }
  std::vector<std::string> texts() const;

 private:
  std::map<std::string, std::pair<std::string, std::int64_t>> rows_;  // first place, how many
};

MeasuredTable read_nccl_tests_text(std::string_view text, const std::string& file);
MeasuredTable read_nccl_tests_json(const nlohmann::json& whole, const std::string& file);
MeasuredTable read_inspector(std::string_view text, const std::string& file);

// Of a file that holds nothing measured: what is read, and what it looks like.
[[noreturn]] void refuse_other(std::string_view text, const std::string& file);

// Of a JSON object. Throws InputError "PLACE: expected 'KEY', found none".
const nlohmann::json& member(const nlohmann::json& of, const char* key, const std::string& place);
double number(const nlohmann::json& of, const std::string& place);
std::int64_t picoseconds(double us);  // at least 1

}  // namespace reshard::sim
