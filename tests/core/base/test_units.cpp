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
  // The greatest, in every unit that reaches it; an E without digits is no exponent.
  for (const char* greatest : {"4EiB", "4 EiB", "4E", "4096PiB", "4.0EiB", "4e0EiB"})
    CHECK(parse_bytes(greatest, "s") == std::int64_t{1} << 62);
  for (const char* more : {"4.1EiB", "4097PiB", "5EB", "8E", "4E+", "4Ei", "4E-"})
    CHECK_THROWS_AS(parse_bytes(more, "s"), InputError);
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
  for (const char* bad : {"nan", "inf", "-5GB/s", "0", "1GB", "0.4B/s", "1e30"})
    CHECK_THROWS_AS(parse_bytes_per_s(bad, "r"), InputError);
  CHECK(parse_duration_ps("8us", "t") == 8'000'000);
  CHECK(parse_duration_ps("39.68ms", "t") == 39'680'000'000);
  CHECK(parse_duration_ps("0", "t") == 0);
  for (const char* bad : {"8", "-1us", "1 fortnight", "1e9s"})
    CHECK_THROWS_AS(parse_duration_ps(bad, "t"), InputError);
}

TEST_CASE("every suffix means what it says, with or without a space") {
  std::int64_t decimal = 3, binary = 3, ps = 3;
  for (std::string letter : {"", "K", "M", "G", "T", "P", "E"}) {
    CAPTURE(letter);
    CHECK(parse_bytes("3" + letter + "B", "s") == decimal);
    CHECK(parse_bytes_per_s("3" + letter + "B/s", "r") == decimal);
    CHECK(parse_bytes("3" + letter, "s") == binary);
    std::string i = letter.empty() ? "B" : letter + "iB";
    CHECK(parse_bytes("3  " + i, "s") == binary);
    CHECK(parse_bytes_per_s("3 " + i + "/s", "r") == binary);
    if (letter == "E") break;
    decimal *= 1000;
    binary *= 1024;
  }
  CHECK((parse_bytes("3k", "s") == 3 << 10 && parse_bytes("3m", "s") == 3 << 20));
  CHECK(parse_bytes("1g", "s") == 1 << 30);
  for (std::string unit : {"ps", "ns", "us", "ms", "s"}) {
    CHECK(parse_duration_ps("3" + unit, "t") == ps);
    ps *= 1000;
  }
}

TEST_CASE("quantities end where they say") {
  CHECK(parse_bytes("4611686018427387904", "s") == std::int64_t{1} << 62);
  CHECK(parse_bytes("4194304TiB", "s") == std::int64_t{1} << 62);
  CHECK_THROWS_WITH(parse_bytes("4611686018427387905", "--limit"),
                    "--limit: expected a size such as 8GiB or 64MB, up to 2^62 bytes, found "
                    "'4611686018427387905'");
  CHECK(parse_bytes_per_s("1", "r") == 1);
  CHECK(parse_bytes_per_s("4611686018427387904B/s", "r") == std::int64_t{1} << 62);
  for (const char* bad : {"0B/s", "4611686018427387905"})
    CHECK_THROWS_WITH(parse_bytes_per_s(bad, "r"),
                      std::string("r: expected a positive rate such as 450GB/s or 6.887e9, up to "
                                  "2^62 bytes per second, found '") +
                          bad + "'");
  CHECK(parse_duration_ps("1e6s", "t") == 1'000'000'000'000'000'000);
  CHECK_THROWS_WITH(parse_duration_ps("1000000000000000001ps", "t"),
                    "t: expected a time such as 8us or 1.5ms, from 0 to 10^6 seconds, found "
                    "'1000000000000000001ps'");
}

TEST_CASE("decimals are rounded to the nearest integer, halves up") {
  std::vector<std::int64_t> read;
  for (const char* text :
       {"0.49999", "0.5", "2.499B", "2.5B", ".5KB", "5.", "1e3", "1E+3", "12.34e1", "0019"})
    read.push_back(parse_bytes(text, "s"));
  CHECK(read == std::vector<std::int64_t>{0, 1, 2, 3, 500, 5, 1'000, 1'000, 123, 19});
  CHECK(parse_bytes("1.5e-3GB", "s") == 1'500'000);
  CHECK(parse_bytes_per_s("0.5B/s", "r") == 1);
}

TEST_CASE("digits and exponents are read up to their limits, no further") {
  std::string zeros(40, '0');
  CHECK(parse_bytes(zeros + "7", "s") == 7);  // zeros in front are no digits
  CHECK(parse_bytes("0." + zeros, "s") == 0);
  CHECK(parse_bytes("0." + zeros + "B", "s") == 0);
  CHECK(parse_duration_ps("0." + zeros.substr(1) + "1s", "t") == 0);
  CHECK(parse_duration_ps("1e-40s", "t") == 0);
  CHECK(parse_duration_ps("1" + zeros.substr(1, 18) + "e-18s", "t") == kPsPerSecond);
  CHECK(parse_bytes("0e40", "s") == 0);
  // What stands behind the last digit that counts may be cut off where it is 0.
  CHECK(parse_bytes("1.00000000000000000000000000000TiB", "s") == std::int64_t{1} << 40);
  for (const std::string& bad : {"0." + zeros + "0", std::string("0e41"), std::string("1e-41"),
                                 std::string("1.00000000000000000000000000001TiB"),
                                 std::string("1e40"), std::string("1e+"), std::string("1e-B")})
    CHECK_THROWS_AS(parse_bytes(bad, "s"), InputError);
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
  CHECK(decimal_text(-4, 10, 0) == "0");
  CHECK(decimal_text(-1, 1, 0) == "-1");
  CHECK(decimal_text(-4, 1000, 2) == "0.00");
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(2, "rank") == "2 ranks");
}

TEST_CASE("quantities for people take the largest unit of which there is one") {
  std::vector<std::string> bytes, times, rates;
  std::int64_t kib = 1024, gib = 1 << 30;
  for (std::int64_t n :
       {kib - 1, kib, kib * kib - 1, kib * kib, gib, kib * gib, gib << 20, gib << 30, kMaxBytes})
    bytes.push_back(bytes_text(n));
  CHECK(bytes == std::vector<std::string>{"1023 B", "1.000 KiB", "1023.999 KiB", "1.000 MiB",
                                          "1.000 GiB", "1.000 TiB", "1.000 PiB", "1.000 EiB",
                                          "4.000 EiB"});
  for (std::int64_t n : {999L, 1'000L, 999'999L, 1'000'000L, 999'999'999L, 1'000'000'000L,
                         kPsPerSecond - 1, kPsPerSecond}) {
    times.push_back(duration_text(n));
    rates.push_back(rate_text(n));
  }
  CHECK(times == std::vector<std::string>{"999 ps", "1.000 ns", "999.999 ns", "1.000 us",
                                          "1000.000 us", "1.000 ms", "1000.000 ms", "1.000 s"});
  CHECK(rates == std::vector<std::string>{"999 B/s", "1000 B/s", "999999 B/s", "1.000 MB/s",
                                          "1000.000 MB/s", "1.000 GB/s", "1000.000 GB/s",
                                          "1.000 TB/s"});
}

TEST_CASE("ratios are read in millionths") {
  CHECK(parse_ratio("0.972", "f") == 972'000);
  CHECK(parse_ratio("1", "f") == 1'000'000);
  CHECK(parse_ratio("0", "f") == 0);
  CHECK(parse_ratio("0.0000005", "f") == 1);
  CHECK(parse_ratio("0.0000004", "f") == 0);
  CHECK(parse_ratio("1000000", "f") == 1'000'000'000'000);
  for (const char* wrong : {"", "-1", "1000000.000001", "nan", "95%", "0,5"})
    CHECK_THROWS_AS(parse_ratio(wrong, "f"), InputError);
}

TEST_CASE("integer helpers") {
  CHECK(transfer_ps(1, 1'000'000'000'000) == 1);
  CHECK(transfer_ps(1'000'000, 450'000'000'000) == 2'222'223);  // 2222222.2 up
  CHECK_FALSE(checked_product(kMaxBytes, 2).has_value());
  CHECK(checked_product(0, kMaxBytes) == 0);
  CHECK(checked_product(kMaxBytes, 1) == kMaxBytes);
  std::int64_t half = std::int64_t{1} << 31;
  CHECK(checked_product(half, half) == kMaxBytes);
  CHECK_FALSE(checked_product(half, half + 1).has_value());
  CHECK_FALSE(checked_product(half + 1, half).has_value());
  CHECK(transfer_ps(0, 7) == 0);
  CHECK(transfer_ps(1, 999'999'999'999) == 2);
  for (std::int64_t a : {0, 1, 2, 3, 4, 6, 7}) CHECK(ceil_div(a, std::int64_t{3}) == (a + 2) / 3);
  CHECK((ceil_div(Int128{kMaxBytes} * 4, Int128{4}) == kMaxBytes));
  CHECK((ceil_div(Int128{kMaxBytes} * 4 + 1, Int128{4}) == Int128{kMaxBytes} + 1));
}

TEST_CASE("sums of bytes end at 2^62") {
  std::int64_t sum = 5;
  add_bytes(sum, 2);
  CHECK(sum == 7);
  add_bytes(sum, kMaxBytes - 7);
  CHECK(sum == kMaxBytes);
  CHECK_THROWS_WITH(add_bytes(sum, 1),
                    "bytes: expected at most 2^62 over all ranks and steps, found more");
  sum = 0;
  CHECK_THROWS_AS(add_bytes(sum, Int128{1} << 64), InputError);
}

TEST_CASE("limits are those that texts name") {
  auto two_to = [](int power) { return std::size_t{1} << power; };
  auto is = [](auto limit, std::size_t value) { return static_cast<std::size_t>(limit) == value; };
  CHECK(is(kMaxBytes, two_to(62)));
  CHECK(is(kMaxRanks, two_to(20)));
  CHECK((is(kMaxDims, 8) && is(kMaxAxes, 5) && is(kMaxDimPieces, two_to(26))));
  CHECK((is(kMaxLineBytes, 64 << 20) && is(kMaxPlanTextBytes, two_to(32))));
  CHECK((is(kMaxPlanNumber, two_to(30)) && is(kMaxPlanExtents, two_to(27))));
  CHECK((is(kMaxDurationPs, 1'000'000'000'000'000'000) && is(kMaxTimePs, two_to(62))));
  CHECK((is(kMaxJsonNesting, 4) && is(kMaxJsonValues, two_to(20) + 64)));
  CHECK((is(kMaxPorts, 64) && is(kMaxShared, 256) && is(kMaxFabric, 1024)));
  CHECK((is(kMaxGroups, 1024) && is(kMaxRoutes, 256) && is(kMaxHops, 16)));
  CHECK((is(kMaxNameLength, 64) && is(kMaxGroupMembers, two_to(20))));
  CHECK((is(kMaxDeviceClasses, 1024) && is(kMaxResources, two_to(24))));
  CHECK((is(kMaxTraceOperations, two_to(24)) && is(kMaxNamedRanks, two_to(25))));
  CHECK((is(kMaxMatrixRanks, 4096) && is(kMaxRuns, 1'000'000) && is(kMaxSweepPairs, 1'000'000)));
  CHECK((is(kMaxTrafficPairs, two_to(26)) && is(kMaxMoves, two_to(24))));
  CHECK((is(kMaxBlocks, two_to(28)) && is(kMaxBoundWork, two_to(33))));
  CHECK((is(kMaxProofPieces, two_to(25)) && is(kMaxOrderBits, two_to(33))));
  CHECK((is(kMaxInFlight, two_to(24)) && is(kMaxStepTransfers, two_to(34))));
}

TEST_CASE("digests are XXH3-128") {
  CHECK(digest_of("").hex() == "99aa06d3014798d86001c324468d497f");
  Hasher hasher;
  hasher.add("ab");
  hasher.add("c");
  CHECK(hasher.digest() == digest_of("abc"));
  CHECK(Digest{0x12, 0xabcdef}.hex() == "00000000000000120000000000abcdef");
  // Numbers are 8 bytes, the lowest first.
  Hasher numbers;
  numbers.add(std::int64_t{0x0807060504030201});
  numbers.add(std::int64_t{-2});
  CHECK(numbers.digest() ==
        digest_of("\x01\x02\x03\x04\x05\x06\x07\x08\xfe\xff\xff\xff\xff\xff\xff\xff"));
  std::string_view text = "abc";
  CHECK(digest_of(std::as_bytes(std::span(text.data(), text.size()))) == digest_of(text));
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
