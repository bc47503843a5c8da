// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <limits>
#include <string>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/inputs/json_reader.h"

using namespace reshard;
using namespace reshard::sim;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

std::string nested(int levels, const std::string& open, const std::string& close) {
  std::string out;
  for (int i = 0; i < levels; ++i) out += open;
  for (int i = 0; i < levels; ++i) out += close;
  return out;
}

json read(std::string_view text, const JsonLimits& limits = {3, 6, 4}) {
  return read_json<json>(text, "f", limits);
}

}  // namespace

TEST_CASE("JSON within its limits is what any parser makes of it") {
  for (const char* text : {"null", "true", "-1", "1.5", "\"a\\u00f6\"", "[]", "{}", "[[[]]]",
                           R"({"a":{"b":{}}})", "[1,2,3,4,5]", R"({"a":1,"b":2,"c":3,"d":4})"}) {
    CHECK(read(text) == json::parse(text));
    CHECK(read_json_or_other<ordered_json>(text, "f", {3, 6, 4}) == ordered_json::parse(text));
  }
}

TEST_CASE("one level, value or field more is refused") {
  CHECK_THROWS_WITH(read("[[[[]]]]"), "f: expected at most 3 levels of nesting, found more");
  CHECK_THROWS_WITH(read(R"({"a":[{"b":[]}]})"),
                    "f: expected at most 3 levels of nesting, found more");
  CHECK_THROWS_WITH(read("[1,2,3,4,5,6]"), "f: expected at most 6 values, found more");
  CHECK_THROWS_WITH(read(R"({"a":1,"b":2,"c":3,"d":4,"e":5})"),
                    "f: expected at most 4 fields in an object, found more");
  CHECK_THROWS_WITH(read("1e999"), "f: expected one JSON object, found a number out of range");
}

TEST_CASE("a field given twice is refused, at any level and with escapes") {
  CHECK_THROWS_WITH(read(R"({"a":1,"a":1})"), "f: expected each field once, found 'a' twice");
  CHECK_THROWS_WITH(read(R"({"b":{"a":1,"\u0061":2}})"),
                    "f: expected each field once, found 'a' twice");
  CHECK_THROWS_WITH(read_json_or_other<ordered_json>(R"({"a":1,"a":1})", "f", kJsonFile),
                    "f: expected each field once, found 'a' twice");
  CHECK(read(R"({"a":{"b":1},"b":{"a":1}})").size() == 2);
}

TEST_CASE("text that is no JSON is refused at its byte, or is another text") {
  CHECK_THROWS_WITH(read("{a}"), "f: expected one JSON object, found no JSON at byte 2: 'a}'");
  CHECK_THROWS_WITH(read("[1"),
                    "f: expected one JSON object, found no JSON at byte 3: the end of the line");
  CHECK_THROWS_WITH(read("[] []"), Catch::Contains("found no JSON at byte 4"));
  CHECK_THROWS_AS(read("\"\xff\""), InputError);
  CHECK(read_json_or_other<json>("# text", "f", kJsonFile).is_discarded());
  CHECK(read_json_or_other<json>("", "f", kJsonFile).is_discarded());
  // What begins as JSON too deep is refused though it ends as none.
  CHECK_THROWS_AS(read_json_or_other<json>(nested(33, "[", ""), "f", kJsonFile), InputError);
}

TEST_CASE("a million levels of lists or objects, closed or not, are refused and cost no stack") {
  for (const std::string& text :
       {nested(1'000'000, "[", "]"), nested(1'000'000, "[", ""), nested(1'000'000, "{\"a\":", "}"),
        nested(1'000'000, "[{\"a\":", "}]")})
    for (const JsonLimits& limits : {kJsonLine, kJsonFile}) {
      CHECK_THROWS_AS(read_json<json>(text, "f", limits), InputError);
      CHECK_THROWS_AS(read_json_or_other<json>(text, "f", limits), InputError);
      CHECK_THROWS_AS(read_json_or_other<ordered_json>(text, "f", limits), InputError);
    }
}

TEST_CASE("integers do not wrap") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(integer_in(json::parse("9223372036854775807")) == kMost);
  CHECK(integer_in(json::parse("-9223372036854775808")) ==
        std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"9223372036854775808", "18446744073709551615", "18446744073709551616",
                           "-9223372036854775809", "1.0", "\"1\"", "true", "null", "[1]"})
    CHECK_FALSE(integer_in(json::parse(text)).has_value());
  CHECK(integer_in(json(5), 5, 5) == 5);
  CHECK_FALSE(integer_in(json(5), 6, 7).has_value());
  CHECK_FALSE(integer_in(json(5), 3, 4).has_value());
  CHECK_FALSE(integer_in(json(std::uint64_t{1} << 63), -1, kMost).has_value());
}

TEST_CASE("values are shown shortly") {
  CHECK(shown(json::parse("[1,2]")) == "a list of 2");
  CHECK(shown(json::parse("{}")) == "an object");
  CHECK(shown(json::parse("\"a\\n\"")) == R"('a\n')");
  CHECK(shown(json(1.5)) == "1.5");
  CHECK(shown(json(nullptr)) == "null");
}
