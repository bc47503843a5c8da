// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "core/base/cursor.h"
#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"

using namespace reshard;

TEST_CASE("sizes are exact") {
  CHECK(parse_bytes("8GiB", "s") == std::int64_t{8} << 30);
  CHECK(parse_bytes("1.5GB", "s") == 1'500'000'000);
  CHECK(parse_bytes("64M", "s") == 64 << 20);
  CHECK(parse_bytes("4096", "s") == 4096);
  CHECK(parse_bytes("0", "s") == 0);
  // 30 digits are kept, not one more.
  CHECK(parse_bytes("1.00000000000000000000000000000KiB", "s") == 1024);
  CHECK_THROWS_AS(parse_bytes("1.000000000000000000000000000000KiB", "s"), InputError);
  for (const char* bad : {"", "x", "-1", "1e60", "5 parsecs", "nan", "0x10", "9999999999GiB",
                          "1.2.3", "1e", ".", "99999999999999999999999999999999999"})
    CHECK_THROWS_AS(parse_bytes(bad, "s"), InputError);
}

TEST_CASE("rates and times are exact") {
  CHECK(parse_bytes_per_s("6.887e9", "r") == 6'887'000'000);
  CHECK(parse_bytes_per_s("6.887e9B/s", "r") == 6'887'000'000);
  CHECK(parse_bytes_per_s("450GB/s", "r") == 450'000'000'000);
  for (auto [text, rate] :
       std::vector<std::pair<const char*, std::int64_t>>{{"3B/s", 3},
                                                         {"3KB/s", 3'000},
                                                         {"3MB/s", 3'000'000},
                                                         {"3TB/s", 3'000'000'000'000},
                                                         {"3KiB/s", std::int64_t{3} << 10},
                                                         {"3MiB/s", std::int64_t{3} << 20},
                                                         {"3GiB/s", std::int64_t{3} << 30},
                                                         {"3TiB/s", std::int64_t{3} << 40}})
    CHECK(parse_bytes_per_s(text, "r") == rate);
  for (const char* bad : {"nan", "inf", "-5GB/s", "0", "1GB", "0.4B/s", "1e30"})
    CHECK_THROWS_AS(parse_bytes_per_s(bad, "r"), InputError);
  CHECK(parse_duration_ps("8us", "t") == 8'000'000);
  CHECK(parse_duration_ps("39.68ms", "t") == 39'680'000'000);
  CHECK(parse_duration_ps("0", "t") == 0);
  for (const char* bad : {"8", "-1us", "1 fortnight", "1e9s"})
    CHECK_THROWS_AS(parse_duration_ps(bad, "t"), InputError);
}

TEST_CASE("quantities for people") {
  CHECK(bytes_text(67'108'864) == "64.000 MiB");
  CHECK(bytes_text(17) == "17 B");
  CHECK(duration_text(671'088'640) == "671.089 us");
  CHECK(duration_text(0) == "0 ps");
  CHECK(rate_text(450'000'000'000) == "450.000 GB/s");
  CHECK(decimal_text(20223, 10000, 4) == "2.0223");
  CHECK(decimal_text(-15, 10, 0) == "-2");
  CHECK(decimal_text(5, 1000, 2) == "0.01");
}

TEST_CASE("integer helpers") {
  CHECK(transfer_ps(1, 1'000'000'000'000) == 1);
  CHECK(transfer_ps(1'000'000, 450'000'000'000) == 2'222'223);  // 2222222.2 up
  CHECK_FALSE(checked_product(kMaxBytes, 2).has_value());
  CHECK(checked_product(0, kMaxBytes) == 0);
}

TEST_CASE("digests are XXH3-128") {
  CHECK(digest_of("").hex() == "99aa06d3014798d86001c324468d497f");
  Hasher hasher;
  hasher.add("ab");
  hasher.add("c");
  CHECK(hasher.digest() == digest_of("abc"));
}

TEST_CASE("quoted text is printable and has an end") {
  CHECK(quoted("a b\n\x7f", 5) == "'a b?\?'");
  CHECK(quoted("a b\n\x7f", 2) == "'a ...'");
}

TEST_CASE("a failed check names its condition and file, not its path") {
  try {
    RESHARD_CHECK(1 + 1 == 3, "arithmetic");
    FAIL("did not throw");
  } catch (const CheckFailure& failure) {
    CHECK_THAT(failure.what(), Catch::Contains("1 + 1 == 3") &&
                                   Catch::Contains("at test_units.cpp:") &&
                                   Catch::Contains("arithmetic") && !Catch::Contains("/"));
  }
}
