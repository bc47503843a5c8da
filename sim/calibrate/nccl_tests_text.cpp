// SPDX-License-Identifier: BSD-3-Clause
// Reads the text output of all versions of nccl-tests. A row is size, count, type, then redop and
// root if the version prints them, then time, algbw, busbw and wrong values, out of place and then
// in place. The position of the time does not follow from the number of words: it is the first
// number that, divided into the size, gives the number after it.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/file_kinds.h"
#include "core/base/limits.h"
#include "sim/calibrate/log_lines.h"
#include "sim/calibrate/measured_names.h"
#include "sim/calibrate/printed_run.h"
#include "sim/machine_files/matrix_words.h"

namespace reshard::sim {
namespace {

using Words = std::vector<std::string_view>;

constexpr double kWrongError = 0.1;  // for the column "error" of old versions, relative

// Output of one process.
struct Process {
  const CollectiveName* name = nullptr;
  PrintedRun run;
  std::vector<std::int64_t> lines;  // by row of the run
  bool rows_seen = false;
  // From the last line of titles: the offsets at which the words "time" end.
  std::vector<std::size_t> time_ends;
  std::size_t titles = 0, time_title = 0;  // number of titles, and the index of the first "time"
  bool errors = false;                     // "error" and not "#wrong"
  struct Open {
    std::int64_t size, line;
  };
  std::optional<Open> open;  // a row of which the figures have not been read yet
};

class TextReader {
 public:
  TextReader(std::string_view text, const std::string& file)
      : text_(text), lines_(text), file_(file), name_(name_of_file(file)) {}

  MeasuredTable read() {
    while (std::optional<LogLines::Line> line = lines_.next()) {
      number_ = line->number;
      if (line->text.size() > kMaxLineBytes) fail("lines of at most 64 MiB", "a longer one");
      take(process(line->process), line->text);
    }
    for (auto& [number, process] : processes_) finish(process);
    if (rows_.empty() && out_.passed_over == 0) fail_empty();
    std::sort(rows_.begin(), rows_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [line, row] : rows_) out_.rows.push_back(std::move(row));
    out_.notes = notes_.texts();
    return std::move(out_);
  }

 private:
  std::string place(std::int64_t line) const {
    return fmt::format("{}:{}", file_, std::max<std::int64_t>(1, line));
  }
  std::string place() const { return place(number_); }
  [[noreturn]] void fail(std::string_view expected, const std::string& found) const {
    throw InputError(fmt::format("{}: expected {}, found {}", place(), expected, found));
  }

  [[noreturn]] void fail_empty() const {
    const FileKind* kind = file_kind(text_);
    if (kind != nullptr && kind->id != "measured" && kind->id != "empty")
      refuse_other(text_, file_);
    fail("the output of nccl-tests", "no row of one");
  }

  Process& process(std::int32_t number) {
    auto [entry, is_new] = processes_.try_emplace(number);
    if (is_new) entry->second.name = name_;
    return entry->second;
  }

  void take(Process& process, std::string_view line) {
    Words header = header_words(line), words = words_of(line);
    if (words.empty()) return;
    if (!header.empty()) return read_header(process, line, header);
    if (words.front().starts_with("#") && words.front() != "#") words.front().remove_prefix(1);
    if (words.front() == "#") words.erase(words.begin());
    if (words.empty()) return;
    if ((words.back().ends_with("...") || words.back() == "\u2026") && !process.rows_seen &&
        !process.run.listed.empty())
      process.run.elided = true;
    if (words.front() == "(B)") return read_units(words);
    if (const CollectiveName* name = program_in(line)) return begin(process, name);
    if (line[line.find_first_not_of(" \t")] == '#') return;
    if (std::size_t row = row_begin(words); row < words.size())
      return read_row(process, line,
                      Words(words.begin() + static_cast<std::ptrdiff_t>(row), words.end()));
    if (words.size() > 5 && whole_number(words[1]) && is_type(words[2]))
      fail("a size in bytes", quoted(words[0]));
    // NCCL may print lines in the middle of a row.
    if (process.open && words.size() >= 3 && printed(words[0]) && printed(words[1]))
      read_figures(process, line, *process.open, words, 0);
  }

  // ---- headers

  // Starts another run, of the named collective or, if `name` is null, of the previous one.
  void begin(Process& process, const CollectiveName* name) {
    finish(process);
    if (name == nullptr) return;
    process.name = name;
    // A line without a prefix applies to all processes.
    if (&process != &processes_.begin()->second || processes_.begin()->first != 0) return;
    name_ = name;
    for (auto& [number, other] : processes_) other.name = name;
  }

  void read_header(Process& process, std::string_view line, const Words& words) {
    if (words[0] == "Rank") return list(process, words);
    if (words[0] == "size") return read_titles(process, line, words);
    if (words[0] == "Collective") return begin(process, program_in(line));
    if (words[0] != "nThread") return;
    begin(process, nullptr);
    std::int64_t threads = *whole_number(words[1]), gpus = 0;
    if (words.size() > 3) gpus = whole_number(words[3]).value_or(0);
    if (threads < 1 || gpus < 1 || threads > kMaxRanks || gpus > kMaxRanks)
      fail("nThread and nGpus from 1 to 2^20", quoted(line, 80));
    process.run.devices = threads * gpus;
  }

  // "Rank 0 Group 0 Pid 100 on host device 0 [0x10] NVIDIA H100".
  void list(Process& process, const Words& words) {
    if (process.rows_seen) finish(process);
    std::int64_t rank = *whole_number(words[1]), group = 0;
    if (rank < 0 || rank >= kMaxRanks) fail("a rank from 0 to 2^20", quoted(words[1]));
    if (words[2] == "Group" && words.size() > 3) group = whole_number(words[3]).value_or(0);
    if (words.back().ends_with("...")) process.run.elided = true;
    process.run.list(rank, group, place());
  }

  void read_titles(Process& process, std::string_view line, const Words& words) {
    process.time_ends.clear();
    process.errors = false;
    process.titles = words.size();
    process.time_title = to_index(std::find(words.begin(), words.end(), "time") - words.begin());
    for (std::string_view word : words) {
      if (word == "cputime")
        fail("the time that the collectives take",
             "'cputime' (nccl-tests -C): the time that the CPU takes to launch them");
      if (word == "time")
        process.time_ends.push_back(to_index(word.data() + word.size() - line.data()));
      if (word == "error") process.errors = true;
    }
    if (process.time_ends.empty()) fail("a column 'time'", quoted(line, 120));
  }

  void read_units(const Words& words) const {
    constexpr std::array<std::string_view, 5> kUnits{"(B)", "(elements)", "(us)", "(GB/s)", "(%)"};
    for (std::string_view word : words)
      if (word.starts_with('(') && std::find(kUnits.begin(), kUnits.end(), word) == kUnits.end())
        fail("columns in B, us and GB/s", quoted(word));
  }

  // ---- rows

  static bool is_type(std::string_view word) {
    constexpr std::array<std::string_view, 16> kTypes{
        "int8", "uint8", "char",   "int32",    "int",    "uint32", "int64",    "uint64",
        "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"};
    return std::find(kTypes.begin(), kTypes.end(), word) != kTypes.end();
  }

  // Index at which "SIZE COUNT TYPE" begins in a line; words.size() if it does not occur. A line
  // that begins with two whole numbers is a row, whatever its type is called.
  static std::size_t row_begin(const Words& words) {
    for (std::size_t i = 0; i + 2 < words.size(); ++i)
      if (whole_number(words[i]) && whole_number(words[i + 1]) && is_type(words[i + 2])) return i;
    bool starts =
        words.size() > 2 && whole_number(words[0]) && whole_number(words[1]) && !printed(words[2]);
    return starts ? 0 : words.size();
  }

  void read_row(Process& process, std::string_view line, const Words& words) {
    if (process.open) close(process);
    process.rows_seen = true;
    if (process.name == nullptr)
      fail("a line that names the collective, such as './all_reduce_perf', before its table",
           "none");
    std::int64_t size = *whole_number(words[0]);
    if (size < 0 || size > kMaxBytes) fail("a size of 0 to 2^62 bytes", quoted(words[0]));
    if (!process.name->kind || size == 0) {
      ++out_.passed_over;
      return;
    }
    Process::Open row{size, number_};
    if (!read_figures(process, line, row, words, 3)) process.open = row;
  }

  // Reads the figures among the words from `from` on; false if there are none.
  bool read_figures(Process& process, std::string_view line, Process::Open open, const Words& words,
                    std::size_t from) {
    std::optional<PrintedRow> likely;  // the one nearest to the title, else the first
    std::size_t least = 0;
    for (std::size_t i = from; i + 2 < words.size(); ++i) {
      std::optional<Printed> time = printed(words[i]), algbw = printed(words[i + 1]),
                             busbw = printed(words[i + 2]);
      if (!time || !algbw || !busbw || time->value < 0) continue;
      PrintedRow row{open.size, *time, *algbw, *busbw, place(open.line)};
      auto end = to_index(words[i].data() + words[i].size() - line.data());
      // Tables written by hand may have no rates.
      bool no_rates = row.time_us.value > 0 && row.algbw.value == 0 && row.busbw.value == 0 &&
                      words.size() == process.titles && i == process.time_title;
      if (row.agrees() || no_rates) {
        add(process, row, i + 3 < words.size() ? words[i + 3] : std::string_view(), end);
        return true;
      }
      if (time->value == 0) continue;
      std::size_t off = process.time_ends.empty() ? i : distance(process.time_ends[0], end);
      if (likely && off >= least) continue;
      likely = row;
      least = off;
    }
    if (!likely) return false;
    fail("size / time = algbw", fmt::format("{} B, {} us and {} GB/s", open.size,
                                            likely->time_us.value, likely->algbw.value));
  }

  static std::size_t distance(std::size_t a, std::size_t b) {
    return std::max(a, b) - std::min(a, b);
  }

  void add(Process& process, const PrintedRow& row, std::string_view wrong, std::size_t time_end) {
    process.open.reset();
    double wrongs = printed(wrong).value_or(Printed{}).value;
    if (wrongs > (process.errors ? kWrongError : 0)) {
      ++out_.passed_over;
      return notes_.add("with wrong values (#wrong or error) skipped", row.place);
    }
    if (process.time_ends.size() > 1 &&
        distance(process.time_ends[1], time_end) < distance(process.time_ends[0], time_end))
      notes_.add("with in-place times only, used unchanged", row.place);
    process.run.rows.push_back(row);
    process.lines.push_back(number_);
  }

  // Skips a row that never got its figures.
  void close(Process& process) {
    ++out_.passed_over;
    notes_.add("without a time skipped", place(process.open->line));
    process.open.reset();
  }

  void finish(Process& process) {
    if (process.open) close(process);
    if (!process.rows_seen && process.run.rows.empty()) {
      // A second header before any row: the ranks listed so far belong to another run.
      process.run = {};
      return;
    }
    if (!process.run.rows.empty()) {
      auto ranks = static_cast<std::int32_t>(process.run.ranks(*process.name->kind));
      for (std::size_t i = 0; i < process.run.rows.size(); ++i) {
        const PrintedRow& row = process.run.rows[i];
        rows_.push_back(
            {process.lines[i],
             {*process.name->kind, ranks, row.bytes, picoseconds(row.time_us.value), row.place}});
      }
    }
    process.run = {};
    process.lines.clear();
    process.rows_seen = false;
  }

  std::string_view text_;
  LogLines lines_;
  const std::string& file_;
  const CollectiveName* name_;
  std::int64_t number_ = 0;
  std::map<std::int32_t, Process> processes_;
  std::vector<std::pair<std::int64_t, MeasuredCollective>> rows_;  // with their line numbers
  RowNotes notes_;
  MeasuredTable out_;
};

}  // namespace

MeasuredTable read_nccl_tests_text(std::string_view text, const std::string& file) {
  return TextReader(text, file).read();
}

}  // namespace reshard::sim
