// SPDX-License-Identifier: BSD-3-Clause
// The JSON that nccl-tests writes with -J:
//
//   {"args": ["./all_reduce_perf", ..], "config": {"nthreads", "ngpus", "devices": [{"rank",
//    "group"}]}, "results": [{"size", "out_of_place": {"time", "alg_bw", "bus_bw", "nwrong"},
//    "in_place": ..}]}
//
// For each process it lists only the first device.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "sim/calibrate/measured_names.h"
#include "sim/calibrate/printed_run.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

constexpr double kRateUnit = 0.05;  // GB/s and us: assumed rounding of the numbers in the JSON

class JsonReader {
 public:
  JsonReader(const Json& whole, const std::string& file) : whole_(whole), file_(file) {}

  MeasuredTable read() {
    const CollectiveName* name = named();
    const Json& results = member(whole_, "results", file_);
    read_devices();
    if (name == nullptr)
      throw InputError(fmt::format(
          "{}: expected the collective in 'args' or in the file's name, found none", file_));
    if (!results.is_array())
      throw InputError(fmt::format("{}: expected a list 'results', found something else", file_));
    for (std::size_t i = 0; i < results.size(); ++i)
      read_result(results[i], fmt::format("{}: results[{}]", file_, i), *name);
    if (!run_.rows.empty()) {
      auto ranks = static_cast<std::int32_t>(number_of_ranks(*name->kind));
      for (const PrintedRow& row : run_.rows)
        out_.rows.push_back(
            {*name->kind, ranks, row.bytes, picoseconds(row.time_us.value), row.place});
    }
    out_.notes = notes_.texts();
    return std::move(out_);
  }

 private:
  const CollectiveName* named() const {
    if (whole_.is_object() && whole_.contains("args")) {
      const Json& args = whole_["args"];
      std::string all;
      if (args.is_string()) all = args.get_ref<const std::string&>();
      if (args.is_array())
        for (const Json& arg : args)
          if (arg.is_string()) all += arg.get_ref<const std::string&>() + " ";
      if (const CollectiveName* name = program_in(all)) return name;
    }
    return name_of_file(file_);
  }

  // Reads 'devices' from `config`, or from the top level, where some converters put it.
  void read_devices() {
    const Json* config =
        whole_.is_object() && whole_.contains("config") ? &whole_["config"] : nullptr;
    bool within = config != nullptr && config->is_object() && config->contains("devices");
    const Json& devices = within ? (*config)["devices"] : member(whole_, "devices", file_);
    if (!devices.is_array() || devices.empty() || devices.size() > to_index(kMaxRanks))
      throw InputError(fmt::format("{}: expected a list 'devices', found something else", file_));
    auto count = [&](const char* key) {
      if (!within || !config->contains(key)) return std::int64_t{1};
      double value = number((*config)[key], fmt::format("{}: config.{}", file_, key));
      if (!(value >= 1 && value <= kMaxRanks))
        throw InputError(
            fmt::format("{}: config.{}: expected 1 to 2^20, found {}", file_, key, value));
      return static_cast<std::int64_t>(value);
    };
    of_each_ = count("nthreads") * count("ngpus");
    entries_ = static_cast<std::int64_t>(devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      auto whole = [&](const char* key, std::int64_t otherwise) {
        if (!devices[i].is_object() || !devices[i].contains(key)) return otherwise;
        double value = number(devices[i][key], fmt::format("{}: devices[{}].{}", file_, i, key));
        if (!(value >= 0 && value < kMaxRanks))
          throw InputError(fmt::format("{}: devices[{}].{}: expected 0 to 2^20, found {}", file_, i,
                                       key, value));
        return static_cast<std::int64_t>(value);
      };
      run_.list(whole("rank", static_cast<std::int64_t>(i)), whole("group", 0),
                fmt::format("{}: devices[{}]", file_, i));
    }
  }

  // Adds a row if the result has a time; the out-of-place time if it has both.
  void read_result(const Json& result, const std::string& place, const CollectiveName& name) {
    double size = number(member(result, "size", place), place + ".size");
    if (!(size >= 0 && size <= 4e18))
      throw InputError(
          fmt::format("{}: expected a size of 0 to 2^62 bytes, found {}", place, size));
    if (!name.kind || size < 1) {
      ++out_.passed_over;
      return;
    }
    for (const char* key : {"out_of_place", "in_place"}) {
      if (std::string_view(key) == "out_of_place") member(result, key, place);
      if (!result.contains(key) || result[key].is_null()) continue;
      std::string within = fmt::format("{}.{}", place, key);
      if (result[key].is_object() && result[key].contains("cpu_time"))
        throw InputError(
            fmt::format("{}: expected 'time', found 'cpu_time' (nccl-tests -C): how "
                        "long the CPU takes to launch",
                        within));
      if (!read_body(result[key], static_cast<std::int64_t>(size), within)) break;
      if (std::string_view(key) == "in_place")
        notes_.add("with in-place times only, used unchanged", place);
      return;
    }
    if (wrong_) return;
    ++out_.passed_over;
    notes_.add("without a time skipped", place);
  }

  // False if there is no time, or the values are wrong.
  bool read_body(const Json& body, std::int64_t size, const std::string& place) {
    wrong_ = false;
    const Json& time = member(body, "time", place);
    if (time.is_null() || time == "nan" || time == "-nan") return false;
    auto rate = [&](const char* key) {
      const Json& value = member(body, key, place);
      return Printed{number(value, fmt::format("{}.{}", place, key)), kRateUnit};
    };
    double us = number(time, place + ".time");
    if (!(us > 0 && us <= 1e12))
      throw InputError(fmt::format("{}: expected a time above 0, found {}", place, us));
    PrintedRow row{size, {us, kRateUnit}, rate("alg_bw"), rate("bus_bw"), place};
    if (!row.agrees())
      throw InputError(
          fmt::format("{}: expected size / time = alg_bw, found {} B, {} us and {} "
                      "GB/s",
                      place, size, us, row.algbw.value));
    if (body.contains("nwrong") && body["nwrong"].is_number() && body["nwrong"].get<double>() > 0) {
      wrong_ = true;
      ++out_.passed_over;
      notes_.add("with wrong values (nwrong) skipped", place);
      return false;
    }
    run_.rows.push_back(std::move(row));
    return true;
  }

  // The entries may be the first devices of all processes; the rates decide whether none is
  // missing.
  std::int64_t number_of_ranks(CollectiveKind kind) {
    PrintedRun all = run_;
    bool each = std::all_of(run_.rows.begin(), run_.rows.end(), [&](const PrintedRow& row) {
      return ranks_by_rates(kind, row).holds(entries_ * of_each_);
    });
    std::int64_t last = run_.listed.rbegin()->first;
    if (!each || of_each_ == 1 || last >= entries_ * of_each_) return all.ranks(kind);
    for (std::int64_t rank = 0; rank < entries_ * of_each_; ++rank)
      if (!all.listed.contains(rank)) all.list(rank, *all.groups.begin(), file_);
    return all.ranks(kind);
  }

  const Json& whole_;
  const std::string& file_;
  std::int64_t entries_ = 0, of_each_ = 1;
  bool wrong_ = false;
  PrintedRun run_;
  RowNotes notes_;
  MeasuredTable out_;
};

}  // namespace

MeasuredTable read_nccl_tests_json(const Json& whole, const std::string& file) {
  return JsonReader(whole, file).read();
}

}  // namespace reshard::sim
