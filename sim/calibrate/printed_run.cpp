// SPDX-License-Identifier: BSD-3-Clause
#include "sim/calibrate/printed_run.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/base/units.h"

namespace reshard::sim {
namespace {

constexpr double kSlack = 1e-3;  // tolerance in addition to the rounding of the printed figures

[[noreturn]] void fail(const std::string& place, std::string_view expected,
                       const std::string& found) {
  throw InputError(fmt::format("{}: expected {}, found {}", place, expected, found));
}

// The range that all rows allow.
RankRange ranks_by_rates(CollectiveKind kind, const std::vector<PrintedRow>& rows) {
  RankRange out{1, kMaxRanks};
  for (const PrintedRow& row : rows) {
    RankRange one = ranks_by_rates(kind, row);
    out = {std::max(out.least, one.least), std::min(out.most, one.most)};
  }
  return out;
}

void require_rates(CollectiveKind kind, const std::vector<PrintedRow>& rows, std::int64_t ranks,
                   const std::string& origin) {
  for (const PrintedRow& row : rows)
    if (RankRange range = ranks_by_rates(kind, row); !range.holds(ranks))
      fail(row.place,
           fmt::format("busbw / algbw for the {} that {}", counted(ranks, "rank"), origin),
           fmt::format("{}, which fit {}", row.rates_text(), text(range)));
}

}  // namespace

std::optional<Printed> printed(std::string_view word) {
  if (word.empty() || word.find_first_not_of("0123456789.eE+-") != std::string_view::npos)
    return std::nullopt;
  Printed out;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out.value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  std::size_t exponent = std::min(word.find_first_of("eE"), word.size()), point = word.find('.');
  int power = 0;
  if (point < exponent) power = static_cast<int>(point) + 1 - static_cast<int>(exponent);
  if (exponent < word.size()) {
    std::string_view digits = word.substr(exponent + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    int by = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), by);
    power += by;
  }
  out.unit = 1;
  for (int i = 0; i < std::min(std::abs(power), 400); ++i) out.unit *= power < 0 ? 0.1 : 10;
  return out;
}

bool PrintedRow::agrees() const {
  if (time_us.value <= 0) return false;
  double size = static_cast<double>(bytes) * 1e-3,
         least = size / (time_us.value + time_us.unit) * (1 - kSlack),
         most = size / std::max(time_us.value - time_us.unit, time_us.value / 2) * (1 + kSlack);
  return algbw.value >= least - algbw.unit && algbw.value <= most + algbw.unit;
}

std::string PrintedRow::rates_text() const {
  return fmt::format("{} GB/s and {} GB/s", busbw.value, algbw.value);
}

// AllReduce: f = 2 (n-1) / n, n = 2 / (2-f); the others: f = (n-1) / n, n = 1 / (1-f).
RankRange ranks_by_rates(CollectiveKind kind, const PrintedRow& row) {
  if (row.algbw.value <= 2 * row.algbw.unit) return {1, kMaxRanks};
  double times = kind == CollectiveKind::AllReduce ? 2 : 1;
  double least_f = (row.busbw.value - row.busbw.unit) / (row.algbw.value + row.algbw.unit),
         most_f = (row.busbw.value + row.busbw.unit) / (row.algbw.value - row.algbw.unit);
  if (least_f >= times) return {1, 0};
  auto ranks = [&](double f) {
    double ends = static_cast<double>(kMaxRanks);
    return f >= times ? ends : std::clamp(times / (times - f), 0.0, ends);
  };
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(ranks(least_f)))),
          static_cast<std::int64_t>(std::floor(ranks(most_f)))};
}

std::string text(const RankRange& range) {
  if (range.least > range.most) return "no number of ranks";
  if (range.least == range.most) return counted(range.least, "rank");
  if (range.most == kMaxRanks) return counted(range.least, "rank") + " or more";
  return fmt::format("{} to {} ranks", range.least, range.most);
}

void PrintedRun::list(std::int64_t rank, std::int64_t group, const std::string& place) {
  groups.insert(group);
  if (!listed.emplace(rank, place).second && twice.empty())
    twice = fmt::format(
        "{}: expected each rank once, found rank {} again: either two runs are mixed, or "
        "nccl-tests was built without MPI and every process ran alone",
        place, rank);
}

std::int64_t PrintedRun::ranks(CollectiveKind kind) const {
  if (!twice.empty()) throw InputError(twice);
  if (groups.size() > 1)
    fail(rows.front().place, "the ranks of one group",
         fmt::format("{} concurrent groups (NCCL_TESTS_SPLIT), whose devices cannot be read",
                     groups.size()));
  std::int64_t out = listed.empty() ? ranks_of_devices(kind) : ranks_of_list(kind);
  if (out > kMaxRanks) fail(rows.front().place, "at most 2^20 ranks", std::to_string(out));
  if (out < 2) fail(rows.front().place, "at least two ranks", "one, which moves nothing");
  return out;
}

std::int64_t PrintedRun::ranks_of_list(CollectiveKind kind) const {
  auto count = static_cast<std::int64_t>(listed.size()), last = listed.rbegin()->first;
  if (count == last + 1 && !elided) {
    require_rates(kind, rows, count, "are listed");
    return count;
  }
  // Lines are missing, so a row must determine the number: a list that lacks its first or middle
  // lines ends at the last rank; one that is elided need not.
  RankRange range = ranks_by_rates(kind, rows);
  if (range.holds(last + 1) && range.most < 2 * (last + 1)) return last + 1;
  if (elided && range.least == range.most && range.least > last) return range.least;
  std::int64_t missing = 0;
  while (listed.contains(missing)) ++missing;
  fail(listed.rbegin()->second, "a line for each rank from 0",
       fmt::format("none of rank {}; busbw / algbw fit {}", missing, text(range)));
}

// nThread x nGpus is the number of one process, and there may be several processes.
std::int64_t PrintedRun::ranks_of_devices(CollectiveKind kind) const {
  RankRange range = ranks_by_rates(kind, rows);
  if (devices > 0 && range.holds(devices)) return devices;
  if (range.least == range.most && (devices == 0 || range.least % devices == 0)) return range.least;
  if (devices == 0)
    fail(rows.front().place, "two or more lines '#  Rank' or 'nThread' and 'nGpus' above", "fewer");
  require_rates(kind, rows, devices, "nThread x nGpus give");
  fail(rows.front().place, "rows of the same number of ranks",
       "rows with busbw / algbw for different numbers");
}

}  // namespace reshard::sim
