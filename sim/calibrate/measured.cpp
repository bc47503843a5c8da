// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/measured.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/base/units.h"
#include "sim/calibrate/measured_names.h"
#include "sim/calibrate/validated.h"
#include "sim/inputs/json_reader.h"
#include "sim/machine_files/matrix_words.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

// Names precede the shorter names that they contain.
constexpr std::array<CollectiveName, 12> kNames{{{"allreduce", CollectiveKind::AllReduce},
                                                 {"allgatherv", std::nullopt},
                                                 {"allgather", CollectiveKind::AllGather},
                                                 {"reducescatter", CollectiveKind::ReduceScatter},
                                                 {"alltoallv", std::nullopt},
                                                 {"alltoall", CollectiveKind::AllToAll},
                                                 {"broadcast", std::nullopt},
                                                 {"sendrecv", std::nullopt},
                                                 {"hypercube", std::nullopt},
                                                 {"gather", std::nullopt},
                                                 {"scatter", std::nullopt},
                                                 {"reduce", std::nullopt}}};
constexpr CollectiveName kOther{"", std::nullopt};

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
}

}  // namespace

const CollectiveName* name_in(std::string_view text) {
  std::string plain;
  for (char c : text)
    if (c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const CollectiveName& name : kNames)
    if (plain.find(name.word) != std::string::npos) return &name;
  return nullptr;
}

const CollectiveName* name_of_file(const std::string& path) { return name_in(base_name(path)); }

const CollectiveName* program_in(std::string_view line) {
  const CollectiveName* unknown = nullptr;
  for (std::string_view word : words_of(line)) {
    word = base_name(word);
    if (word.find("_perf") == std::string_view::npos) continue;
    if (const CollectiveName* name = name_in(word)) return name;
    if (word.ends_with("_perf") || word.ends_with("_perf_mpi")) unknown = &kOther;
  }
  return unknown;
}

std::vector<std::string> RowNotes::texts() const {
  std::vector<std::string> out;
  for (const auto& [reason, rows] : rows_)
    out.push_back(fmt::format("{}: {} {}", rows.first, counted(rows.second, "row"), reason));
  return out;
}

const Json& member(const Json& of, const char* key, const std::string& place) {
  if (!of.is_object() || !of.contains(key))
    throw InputError(fmt::format("{}: expected '{}', found none", place, key));
  return of[key];
}

double number(const Json& of, const std::string& place) {
  if (of.is_number()) return of.get<double>();
  throw InputError(fmt::format("{}: expected a number, found {}{}", place,
                               of.is_string() ? "the text " : "", shown(of)));
}

std::int64_t picoseconds(double us) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(us * 1e6 + 0.5));
}

void refuse_other(std::string_view text, const std::string& file) {
  throw InputError(
      fmt::format("{}:1: expected output of nccl-tests (text, -J), NCCL's Inspector, reshard "
                  "validate --json or p2pBandwidthLatencyTest, found {}",
                  file, file_look(text)));
}

MeasuredTable parse_measured(std::string_view text, const std::string& file) {
  std::string_view body = after_byte_order_mark(text);
  std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || body[first] != '{')
    return read_nccl_tests_text(body, file);
  const FileKind* kind = file_kind(body);
  if (kind->id != "measured" && kind->id != "report") refuse_other(body, file);
  Json whole = read_json_or_other<Json>(body, file, kJsonFile);
  if (is_validated(whole)) return parse_validated(whole, file);
  bool lines = whole.is_discarded() || whole.contains("coll_perf") || whole.contains("header");
  return lines ? read_inspector(body, file) : read_nccl_tests_json(whole, file);
}

std::optional<CollectiveKind> collective_named(std::string_view name) {
  const CollectiveName* found = name_in(name);
  return found == nullptr ? std::nullopt : found->kind;
}

}  // namespace reshard::sim
