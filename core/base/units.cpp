// SPDX-License-Identifier: BSD-3-Clause
// A decimal such as "6.887e9" is read into digits and a power of ten, then scaled by its unit in
// 128-bit integers: the same text gives the same integer with every compiler and locale.
#include "core/base/units.h"

#include <array>
#include <optional>
#include <span>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"

namespace reshard {
namespace {

struct Unit {
  std::string_view suffix;
  std::int64_t scale;
};

constexpr std::int64_t kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024,
                       kPi = kTi * 1024, kEi = kPi * 1024, kPeta = 1'000'000'000'000'000,
                       kExa = kPeta * 1000;
constexpr std::array<Unit, 23> kByteUnits{
    {{"", 1},         {"B", 1},           {"KB", 1000},
     {"MB", 1000000}, {"GB", 1000000000}, {"TB", 1000000000000},
     {"KiB", kKi},    {"MiB", kMi},       {"GiB", kGi},
     {"TiB", kTi},    {"PB", kPeta},      {"EB", kExa},
     {"PiB", kPi},    {"EiB", kEi},       {"K", kKi},
     {"M", kMi},      {"G", kGi},         {"k", kKi},
     {"m", kMi},      {"g", kGi},         {"T", kTi},
     {"P", kPi},      {"E", kEi}}};
constexpr std::array<Unit, 14> kRateUnits{{{"", 1},
                                           {"B/s", 1},
                                           {"KB/s", 1000},
                                           {"MB/s", 1000000},
                                           {"GB/s", 1000000000},
                                           {"TB/s", 1000000000000},
                                           {"KiB/s", kKi},
                                           {"MiB/s", kMi},
                                           {"GiB/s", kGi},
                                           {"TiB/s", kTi},
                                           {"PB/s", kPeta},
                                           {"EB/s", kExa},
                                           {"PiB/s", kPi},
                                           {"EiB/s", kEi}}};
constexpr std::array<Unit, 5> kTimeUnits{
    {{"ps", 1}, {"ns", 1000}, {"us", 1000000}, {"ms", 1000000000}, {"s", 1000000000000}}};

struct Decimal {
  Int128 digits = 0;
  int exponent = 0;  // value = digits * 10^exponent
  std::string_view suffix;
};

// At most 30 significant digits and an exponent within +-40, which covers every quantity here.
std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal out;
  std::size_t i = 0;
  int digit_count = 0;
  bool point = false, any = false;
  for (; i < text.size(); ++i) {
    char c = text[i];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      if (out.digits != 0 || c != '0') ++digit_count;
      if (digit_count > 30) return std::nullopt;
      out.digits = out.digits * 10 + (c - '0');
      if (point) --out.exponent;
      if (out.exponent < -40) return std::nullopt;
    } else {
      break;
    }
  }
  if (!any) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    bool negative = j < text.size() && text[j] == '-';
    if (j < text.size() && (text[j] == '-' || text[j] == '+')) ++j;
    int exponent = 0;
    std::size_t begin = j;
    for (; j < text.size() && text[j] >= '0' && text[j] <= '9'; ++j) {
      exponent = exponent * 10 + (text[j] - '0');
      if (exponent > 40) return std::nullopt;
    }
    // An 'E' without digits begins a unit, such as EiB.
    if (j > begin) {
      out.exponent += negative ? -exponent : exponent;
      i = j;
    }
  }
  out.suffix = text.substr(i);
  while (!out.suffix.empty() && out.suffix.front() == ' ') out.suffix.remove_prefix(1);
  return out;
}

// digits * 10^exponent * scale, rounded to the nearest integer; nothing if it exceeds `high`.
std::optional<std::int64_t> scaled(const Decimal& decimal, std::int64_t scale, std::int64_t high) {
  Int128 value = decimal.digits;
  int exponent = decimal.exponent;
  const Int128 limit = Int128{1} << 120;
  for (; exponent < 0 && value % 10 == 0 && value != 0; ++exponent) value /= 10;
  if (value != 0 && value > limit / scale) return std::nullopt;
  value *= scale;
  for (; exponent > 0; --exponent) {
    if (value > limit / 10) return std::nullopt;
    value *= 10;
  }
  Int128 divisor = 1;
  for (; exponent < 0; ++exponent) {
    if (divisor > limit / 10) return std::int64_t{0};
    divisor *= 10;
  }
  value = (value + divisor / 2) / divisor;
  if (value > high) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::int64_t parse_quantity(std::string_view text, std::string_view field,
                            std::span<const Unit> units, std::string_view expected,
                            std::int64_t low, std::int64_t high, bool bare_zero) {
  auto fail = [&]() -> InputError {
    return InputError(fmt::format("{}: expected {}, found {}", field, expected, quoted(text)));
  };
  std::optional<Decimal> decimal = read_decimal(text);
  if (!decimal) throw fail();
  if (bare_zero && decimal->suffix.empty() && decimal->digits == 0) return 0;
  for (const Unit& unit : units) {
    if (decimal->suffix != unit.suffix) continue;
    std::optional<std::int64_t> value = scaled(*decimal, unit.scale, high);
    if (!value || *value < low) throw fail();
    return *value;
  }
  throw fail();
}

std::string with_unit(std::int64_t value, std::span<const Unit> ladder,
                      std::string_view zero_unit) {
  for (std::size_t i = ladder.size(); i-- > 0;)
    if (value >= ladder[i].scale && ladder[i].scale > 1)
      return fmt::format("{} {}", decimal_text(value, ladder[i].scale, 3), ladder[i].suffix);
  return fmt::format("{} {}", value, zero_unit);
}

}  // namespace

std::int64_t parse_bytes(std::string_view text, std::string_view field) {
  return parse_quantity(text, field, kByteUnits, "a size such as 8GiB or 64MB, up to 2^62 bytes", 0,
                        kMaxBytes, true);
}

std::int64_t parse_bytes_per_s(std::string_view text, std::string_view field) {
  return parse_quantity(text, field, kRateUnits,
                        "a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per second",
                        1, kMaxBytes, false);
}

std::int64_t parse_duration_ps(std::string_view text, std::string_view field) {
  return parse_quantity(text, field, kTimeUnits,
                        "a time such as 8us or 1.5ms, from 0 to 10^6 seconds", 0, kMaxDurationPs,
                        true);
}

std::int64_t parse_ratio(std::string_view text, std::string_view field) {
  constexpr std::array<Unit, 1> kUnits{{{"", kRatioOne}}};
  return parse_quantity(text, field, kUnits, "a ratio such as 0.95", 0, kRatioOne * kRatioOne,
                        false);
}

std::string decimal_text(std::int64_t value, std::int64_t unit, int decimals) {
  Int128 power = 1;
  for (int i = 0; i < decimals; ++i) power *= 10;
  Int128 magnitude = value < 0 ? -Int128{value} : Int128{value};
  Int128 rounded = (magnitude * power * 2 + unit) / (Int128{unit} * 2);
  auto whole = static_cast<std::int64_t>(rounded / power),
       part = static_cast<std::int64_t>(rounded % power);
  std::string sign = value < 0 && rounded != 0 ? "-" : "";
  return decimals == 0 ? fmt::format("{}{}", sign, whole)
                       : fmt::format("{}{}.{:0{}}", sign, whole, part, decimals);
}

std::string counted(std::int64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<Unit, 6> ladder{
      {{"KiB", kKi}, {"MiB", kMi}, {"GiB", kGi}, {"TiB", kTi}, {"PiB", kPi}, {"EiB", kEi}}};
  return with_unit(bytes, ladder, "B");
}

std::string duration_text(std::int64_t ps) { return with_unit(ps, kTimeUnits, "ps"); }

std::string rate_text(std::int64_t bytes_per_s) {
  constexpr std::array<Unit, 3> ladder{
      {{"MB/s", 1000000}, {"GB/s", 1000000000}, {"TB/s", 1000000000000}}};
  return with_unit(bytes_per_s, ladder, "B/s");
}

}  // namespace reshard
