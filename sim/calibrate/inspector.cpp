// SPDX-License-Identifier: BSD-3-Clause
// Lines of NCCL's Inspector:
//
//   {"header": {"n_ranks": 8, ..}, "coll_perf": {"coll": "AllReduce", "coll_msg_size_bytes": 8,
//    "coll_exec_time_us": 21.6, "coll_algobw_gbs": .., ..}}
//
// For an AllGather the size is what one rank sends, for a ReduceScatter what one rank receives; the
// rates count all ranks' parts. Lines of other records are skipped.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "sim/calibrate/measured_names.h"
#include "sim/calibrate/printed_run.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

class InspectorReader {
 public:
  InspectorReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  MeasuredTable read() {
    for (std::int64_t line = 1; !text_.empty(); ++line) {
      std::string_view words = take_line(text_);
      if (words.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      place_ = fmt::format("{}:{}", file_, line);
      Json record = read_json_or_other<Json>(words, place_, kJsonFile);
      if (record.is_discarded() || !record.is_object())
        throw InputError(place_ +
                         ": expected nccl-tests -J JSON or NCCL Inspector lines, found other text");
      if (record.contains("coll_perf"))
        add(member(record, "header", place_), record["coll_perf"]);
      else
        ++out_.passed_over;
    }
    for (auto& [key, rows] : by_kind_) {
      std::sort(rows.begin(), rows.end(),
                [](const auto& a, const auto& b) { return a.time_ps < b.time_ps; });
      out_.rows.push_back(rows[(rows.size() - 1) / 2]);
    }
    out_.notes = notes_.texts();
    return std::move(out_);
  }

 private:
  void add(const Json& header, const Json& perf) {
    double ranks = number(member(header, "n_ranks", place_), place_ + ": n_ranks"),
           size = number(member(perf, "coll_msg_size_bytes", place_),
                         place_ + ": coll_msg_size_bytes"),
           us = number(member(perf, "coll_exec_time_us", place_), place_ + ": coll_exec_time_us");
    const Json& coll = member(perf, "coll", place_);
    const CollectiveName* name =
        coll.is_string() ? name_in(coll.get_ref<const std::string&>()) : nullptr;
    if (!(size >= 0 && size <= 4e18 && us > 0 && us <= 1e12 && ranks >= 1 && ranks <= kMaxRanks))
      throw InputError(place_ +
                       ": expected 1 to 2^20 ranks, 0 to 2^62 bytes and a time above 0, "
                       "found others");
    if (name == nullptr || !name->kind || size < 1 || ranks < 2) {
      ++out_.passed_over;
      return;
    }
    PrintedRow row{
        0, {us, 1e-6 * us}, rate(perf, "coll_algobw_gbs"), rate(perf, "coll_busbw_gbs"), place_};
    auto n = static_cast<std::int64_t>(ranks);
    if (!whole_size(row, *name->kind, static_cast<std::int64_t>(size), n)) {
      ++out_.passed_over;
      return;
    }
    by_kind_[{*name->kind, n, row.bytes}].push_back(
        {*name->kind, static_cast<std::int32_t>(n), row.bytes, picoseconds(us), place_});
  }

  // 0 if the record does not give it.
  Printed rate(const Json& perf, const char* key) const {
    if (!perf.contains(key) || perf[key].is_null()) return {};
    double value = number(perf[key], fmt::format("{}: {}", place_, key));
    return {value, 2e-6};
  }

  // Sets the row's bytes to those of all parts. False if it is unknown whether `size` counts them
  // all.
  bool whole_size(PrintedRow& row, CollectiveKind kind, std::int64_t size, std::int64_t ranks) {
    std::int64_t all = size > kMaxBytes / ranks ? kMaxBytes : size * ranks;
    bool part = kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter;
    row.bytes = part ? all : size;
    if (row.algbw.value <= 0) {
      if (kind != CollectiveKind::AllToAll) return true;
      notes_.add(
          "of AllToAll skipped: no coll_algobw_gbs, which shows whether the size is that of one "
          "peer or of all",
          place_);
      return false;
    }
    if (!row.agrees()) row.bytes = part ? size : all;
    if (!row.agrees())
      throw InputError(
          fmt::format("{}: expected coll_msg_size_bytes (of a rank or of all {}) / "
                      "coll_exec_time_us = coll_algobw_gbs, found {} B, {} us and {} GB/s",
                      place_, ranks, size, row.time_us.value, row.algbw.value));
    if (row.busbw.value > 0 && !ranks_by_rates(kind, row).holds(ranks))
      throw InputError(
          fmt::format("{}: expected busbw / algbw for {} ranks, found {}, which fit {}", place_,
                      ranks, row.rates_text(), sim::text(ranks_by_rates(kind, row))));
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  std::string place_;
  std::map<std::tuple<CollectiveKind, std::int64_t, std::int64_t>, std::vector<MeasuredCollective>>
      by_kind_;
  RowNotes notes_;
  MeasuredTable out_;
};

}  // namespace

MeasuredTable read_inspector(std::string_view text, const std::string& file) {
  return InspectorReader(text, file).read();
}

}  // namespace reshard::sim
