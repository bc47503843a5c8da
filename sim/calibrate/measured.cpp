// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/measured.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/base/units.h"
#include "sim/calibrate/validated.h"
#include "sim/inputs/json_reader.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

struct Name {
  std::string_view word;
  std::optional<CollectiveKind> kind;  // none: not ours
};
// Longer names before those that they contain.
constexpr std::array<Name, 9> kNames{{{"allreduce", CollectiveKind::AllReduce},
                                      {"allgather", CollectiveKind::AllGather},
                                      {"reducescatter", CollectiveKind::ReduceScatter},
                                      {"alltoallv", std::nullopt},
                                      {"alltoall", CollectiveKind::AllToAll},
                                      {"broadcast", std::nullopt},
                                      {"sendrecv", std::nullopt},
                                      {"hypercube", std::nullopt},
                                      {"reduce", std::nullopt}}};

// The first of the names in a text, whatever its case and underscores.
const Name* name_in(std::string_view text) {
  std::string plain;
  for (char c : text)
    if (c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const Name& name : kNames)
    if (plain.find(name.word) != std::string::npos) return &name;
  return nullptr;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0;;) {
    std::size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) return out;
    at = std::min(line.find_first_of(" \t", begin), line.size());
    out.push_back(line.substr(begin, at - begin));
  }
}

std::optional<std::int64_t> integer(std::string_view word) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::string base_name(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

class TextReader {
 public:
  TextReader(std::string_view text, const std::string& file)
      : text_(behind_mark(text)), file_(file), name_(name_in(base_name(file))) {}

  MeasuredTable read() {
    while (!text_.empty()) {
      std::string_view line = take_line(text_);
      ++line_number_;
      if (line.size() > kMaxLineBytes) fail("lines of at most 64 MiB", "a longer one");
      std::vector<std::string_view> words = words_of(line);
      if (words.empty()) continue;
      if (words.front() == "#" || words.front().starts_with("#"))
        header(line, words);
      else if (integer(words.front()))
        row(words);
      else if (line.find("_perf") != std::string_view::npos)
        begin(name_in(line));
    }
    if (out_.rows.empty() && out_.passed_over == 0)
      fail("the output of nccl-tests", "no row of it");
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string_view expected, const std::string& found) const {
    throw InputError(fmt::format("{}:{}: expected {}, found {}", file_,
                                 std::max<std::int64_t>(1, line_number_), expected, found));
  }

  // Another run, of the collective named or, where it is not, of the one before.
  void begin(const Name* name) {
    if (rows_seen_) ranks_ = devices_ = 0;
    rows_seen_ = false;
    if (name != nullptr) name_ = name;
  }

  // "#  Rank  0 Group ..."; "# nThread 1 nGpus 8 ..."; what names the collective.
  void header(std::string_view line, const std::vector<std::string_view>& words) {
    if (words.size() > 2 && words[1] == "Rank" && integer(words[2])) {
      ++ranks_;
      return;
    }
    if (line.find("_perf") != std::string_view::npos) begin(name_in(line));
    if (words.size() < 5 || words[1] != "nThread") return;
    begin(nullptr);
    std::int64_t threads = integer(words[2]).value_or(0), gpus = 0;
    if (words[3] == "nGpus") gpus = integer(words[4]).value_or(0);
    if (threads < 1 || gpus < 1 || threads > kMaxRanks || gpus > kMaxRanks)
      fail("nThread and nGpus from 1 to 2^20", quoted(line, 80));
    devices_ = threads * gpus;
  }

  // size count type redop root time ..
  void row(const std::vector<std::string_view>& words) {
    rows_seen_ = true;
    if (words.size() < 6) fail("a row of size, count, type, redop, root, time", quoted(words[0]));
    if (name_ == nullptr)
      fail("a line that names the collective, such as './all_reduce_perf', before its table",
           "none");
    std::int64_t size = *integer(words[0]), ranks = ranks_ > 0 ? ranks_ : devices_;
    if (size < 0 || size > kMaxBytes) fail("a size of 0 to 2^62 bytes", quoted(words[0]));
    if (ranks > kMaxRanks) fail("at most 2^20 ranks", std::to_string(ranks));
    if (!name_->kind || size == 0) {
      ++out_.passed_over;
      return;
    }
    if (ranks < 2) fail("two or more lines '#  Rank' or 'nThread' and 'nGpus' above", "fewer");
    std::string where = fmt::format("{}:{}: time", file_, line_number_);
    std::int64_t time_ps = parse_duration_ps(std::string(words[5]) + "us", where);
    if (time_ps == 0) fail("a time above 0", quoted(words[5]));
    out_.rows.push_back({*name_->kind, static_cast<std::int32_t>(ranks), size, time_ps,
                         fmt::format("{}:{}", file_, line_number_)});
  }

  std::string_view text_;
  const std::string& file_;
  const Name* name_;
  std::int64_t line_number_ = 0, ranks_ = 0, devices_ = 0;
  bool rows_seen_ = false;
  MeasuredTable out_;
};

// ---- JSON

const Json& member(const Json& of, const char* key, const std::string& place) {
  if (!of.is_object() || !of.contains(key))
    throw InputError(fmt::format("{}: expected '{}', found none", place, key));
  return of[key];
}

double number(const Json& of, const std::string& place) {
  if (of.is_number()) return of.get<double>();
  throw InputError(fmt::format("{}: expected a number, found {}", place, shown(of)));
}

// {"args": [...] or "...", "devices": [...], "results": [{"size", "out_of_place": {"time"}}]}
MeasuredTable parse_json(const Json& whole, const std::string& file) {
  const Name* name = name_in(base_name(file));
  if (whole.is_object() && whole.contains("args"))
    if (const Name* named = name_in(whole["args"].dump())) name = named;
  const Json &devices = member(whole, "devices", file), &results = member(whole, "results", file);
  if (name == nullptr)
    throw InputError(
        fmt::format("{}: expected the collective in 'args' or in the file's name, "
                    "found none",
                    file));
  if (!devices.is_array() || devices.size() < 2 || !results.is_array() ||
      devices.size() > to_index(kMaxRanks))
    throw InputError(fmt::format(
        "{}: expected lists 'devices', of at least two, and 'results', found others", file));
  MeasuredTable out;
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::string place = fmt::format("{}: results[{}]", file, i);
    double size = number(member(results[i], "size", place), place + ".size"),
           us = number(member(member(results[i], "out_of_place", place), "time", place),
                       place + ".out_of_place.time");
    if (!(size >= 0 && size <= 4e18 && us > 0 && us <= 1e12))
      throw InputError(
          fmt::format("{}: expected a size of 0 to 2^62 bytes and a time above 0, "
                      "found others",
                      place));
    if (!name->kind || size < 1) {
      ++out.passed_over;
      continue;
    }
    out.rows.push_back(
        {*name->kind, static_cast<std::int32_t>(devices.size()), static_cast<std::int64_t>(size),
         std::max<std::int64_t>(1, static_cast<std::int64_t>(us * 1e6 + 0.5)), place});
  }
  return out;
}

// ---- the Inspector

// {"header": {"n_ranks": 8, ...}, "coll_perf": {"coll": "AllReduce", "coll_msg_size_bytes": 8,
// "coll_exec_time_us": 21.6, ...}}; other lines are passed over.
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
                         ": expected JSON of nccl-tests -J or lines of NCCL's Inspector, "
                         "found another text");
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
    return std::move(out_);
  }

 private:
  void add(const Json& header, const Json& perf) {
    double ranks = number(member(header, "n_ranks", place_), place_ + ": n_ranks"),
           size = number(member(perf, "coll_msg_size_bytes", place_),
                         place_ + ": coll_msg_size_bytes"),
           us = number(member(perf, "coll_exec_time_us", place_), place_ + ": coll_exec_time_us");
    const Json& coll = member(perf, "coll", place_);
    const Name* name = coll.is_string() ? name_in(coll.get_ref<const std::string&>()) : nullptr;
    if (!(size >= 0 && size <= 4e18 && us > 0 && us <= 1e12 && ranks >= 1 && ranks <= kMaxRanks))
      throw InputError(place_ +
                       ": expected 1 to 2^20 ranks, 0 to 2^62 bytes and a time above 0, "
                       "found others");
    if (name == nullptr || !name->kind || size < 1 || ranks < 2) {
      ++out_.passed_over;
      return;
    }
    MeasuredCollective row{
        *name->kind, static_cast<std::int32_t>(ranks), static_cast<std::int64_t>(size),
        std::max<std::int64_t>(1, static_cast<std::int64_t>(us * 1e6 + 0.5)), place_};
    by_kind_[{row.kind, row.ranks, row.bytes}].push_back(std::move(row));
  }

  std::string_view text_;
  const std::string& file_;
  std::string place_;
  std::map<std::tuple<CollectiveKind, std::int32_t, std::int64_t>, std::vector<MeasuredCollective>>
      by_kind_;
  MeasuredTable out_;
};

}  // namespace

MeasuredTable parse_measured(std::string_view text, const std::string& file) {
  std::string_view body = behind_mark(text);
  std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || body[first] != '{') return TextReader(text, file).read();
  Json whole = read_json_or_other<Json>(body, file, kJsonFile);
  if (is_validated(whole)) return parse_validated(whole, file);
  bool lines = whole.is_discarded() || whole.contains("coll_perf") || whole.contains("header");
  return lines ? InspectorReader(body, file).read() : parse_json(whole, file);
}

std::optional<CollectiveKind> collective_named(std::string_view name) {
  const Name* found = name_in(name);
  return found == nullptr ? std::nullopt : found->kind;
}

}  // namespace reshard::sim
