// SPDX-License-Identifier: BSD-3-Clause
// Safetensors files and checkpoints: what they say, and that damaged ones of every kind are refused
// in a sentence.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/weights/weights.h"
#include "tests/support/weights_files.h"

using namespace reshard;
using namespace reshard::sim;
using Catch::Matchers::Contains;
using reshard::test::safetensors_of;

namespace {

std::vector<SafetensorsEntry> parsed(const std::string& file) {
  // A copy of the exact size, so that a sanitizer sees what is read beyond it.
  std::vector<std::byte> bytes(file.size());
  std::transform(file.begin(), file.end(), bytes.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  auto out = parse_safetensors(bytes, "w.safetensors");
  for (SafetensorsEntry& entry : out) entry.bytes = {};  // they are gone with the copy
  return out;
}

void check_refused(const std::string& file, const std::string& what) {
  CAPTURE(file.substr(0, 200));
  CHECK_THROWS_WITH(parsed(file), Contains("w.safetensors: ") && Contains(what));
  CHECK_THROWS_AS(parsed(file), InputError);
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"w\": {\"dtype\": " + dtype + ", \"shape\": " + shape +
         ", \"data_offsets\": " + offsets + "}}";
}

}  // namespace

TEST_CASE("a header gives names, dtypes, shapes and bytes, in the order of the data") {
  std::string header =
      R"({"__metadata__": {"format": "pt"}, "b": {"dtype": "BF16", "shape": [2, 3],)"
      R"( "data_offsets": [4, 16]}, "a": {"shape": [], "data_offsets": [0, 4], "dtype": "F32"},)"
      R"( "none": {"dtype": "I64", "shape": [0, 5], "data_offsets": [4, 4]}, "u": {"dtype": "U32",)"
      R"( "shape": [1], "data_offsets": [16, 20]}}   )";
  std::string file = safetensors_of(header, "0123456789abcdefghij");
  auto bytes = std::as_bytes(std::span(file));
  auto entries = parse_safetensors(bytes, "f");
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].name == "a");
  CHECK(entries[0].shape.empty());
  CHECK(entries[1].name == "none");
  CHECK(entries[1].bytes.empty());
  CHECK(entries[2].name == "b");
  CHECK(entries[2].dtype == DType::BF16);
  CHECK(entries[2].shape == std::vector<std::int64_t>{2, 3});
  CHECK(static_cast<char>(entries[2].bytes[0]) == '4');
  CHECK(entries[2].bytes.size() == 12);
  CHECK_FALSE(entries[3].dtype);
  CHECK(entries[3].dtype_name == "U32");
  CHECK(parsed(safetensors_of("{}", "")).empty());
}

TEST_CASE("files that are not what they should be are refused") {
  check_refused("", "an empty file");
  check_refused("1234567", "7 bytes");
  check_refused(std::string(8, '\0'), "begins with '{', found none");
  check_refused(safetensors_of("[]", ""), "begins with '{', found '['");
  check_refused(safetensors_of(" {}", ""), "begins with '{', found ' '");
  check_refused(safetensors_of("{", ""), "no JSON at byte");
  check_refused(safetensors_of("{} x", ""), "no JSON at byte");
  check_refused("PK\x03\x04zip and so on", "a zip archive");
  check_refused("{\"weight_map\": {}}", "a safetensors index");
  check_refused(std::string(7, '\xff') + "\x7f{}", "at most 100000000 bytes");
  std::string whole = safetensors_of(entry("\"F32\"", "[2]", "[0, 8]"), "01234567");
  CHECK(parsed(whole).size() == 1);
  for (std::size_t size = 0; size < whole.size(); ++size) check_refused(whole.substr(0, size), "");
  check_refused(whole + "8", "expected 8 bytes of data, as the header says, found 9");
}

TEST_CASE("entries that are not what they should be are refused") {
  auto refuse = [](const std::string& header, const std::string& what) {
    check_refused(safetensors_of(header, "01234567"), what);
  };
  refuse("{\"w\": 3}", "tensor 'w': header: expected an object, found 3");
  refuse("{\"w\": {\"dtype\": \"F32\", \"shape\": [2]}}", "expected data_offsets, found none");
  refuse(R"({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], "more": 1}})", "'more'");
  refuse(entry("\"F33\"", "[2]", "[0, 8]"), "dtype: expected one of F64, F32");
  refuse(entry("32", "[2]", "[0, 8]"), "dtype: expected one of");
  refuse(entry("\"F32\"", "2", "[0, 8]"), "shape: expected a list of integers from 0, found 2");
  refuse(entry("\"F32\"", "[-2]", "[0, 8]"), "shape: expected a list of integers from 0, found -2");
  refuse(entry("\"F32\"", "[2.0]", "[0, 8]"), "found 2.0");
  refuse(entry("\"F32\"", "[2]", "[0]"), "data_offsets: expected a list of two offsets");
  refuse(entry("\"F32\"", "[2]", "[8, 0]"), "data_offsets: expected a list of two offsets");
  refuse(entry("\"F32\"", "[2]", "[-8, 0]"), "data_offsets: expected a list of two offsets");
  refuse(entry("\"F32\"", "[3]", "[0, 12]"), "at most the 8 bytes of data that follow");
  refuse(entry("\"F32\"", "[3]", "[0, 8]"), "expected the 12 bytes of F32[3], found 8");
  refuse(entry("\"F4\"", "[17]", "[0, 8]"), "expected the 8.5 bytes of F4[17], found 8");
  refuse(entry("\"F32\"", "[4611686018427387904, 4]", "[0, 8]"), "over 2^62");
  refuse(entry("\"F32\"", "[99999999999999999999]", "[0, 8]"), "shape: expected");
  refuse(entry("\"F32\"", "[1]", "[0, 4]"), "expected 4 bytes of data");
  refuse(entry("\"F32\"", "[1]", "[4, 8]"), "a gap, data from 4 on");
  refuse(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},)"
         R"( "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
         "an overlap from 4 on");
  refuse(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},)"
         R"( "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
         "each field once");
  refuse(
      R"({"__metadata__": {"n": 1}, "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
      "__metadata__");
}

TEST_CASE("checkpoints are files, or folders with one or an index") {
  test::TemporaryFolder folder;
  auto refused = [&](const std::string& path, const std::string& what) {
    CHECK_THROWS_WITH(Weights(path), Contains(what));
    CHECK_THROWS_AS(Weights(path), InputError);
  };
  auto named = [&](const std::string& name) {
    return safetensors_of(
        "{\"" + name + "\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}}",
        "01234567");
  };
  refused(folder.path(), "found neither");
  refused(folder / "none", "no such file");
  refused("/dev/null", "no regular file");
  test::write_file(folder / "one.safetensors", named("one"));
  test::write_file(folder / "two.safetensors", named("two"));
  CHECK(Weights(folder / "one.safetensors").find("one") != nullptr);
  CHECK(Weights(folder / "one.safetensors").find("two") == nullptr);
  std::string index = folder / "model.safetensors.index.json";
  test::write_file(index, R"({"metadata": {"total_size": 16}, "weight_map":)"
                          R"( {"one": "one.safetensors", "two": "two.safetensors"}})");
  for (const std::string& path : {folder.path(), folder.path() + "/", index}) {
    Weights weights(path);
    CHECK(weights.find("one")->entry.bytes.size() == 8);
    CHECK_THAT(weights.find("two")->place, Contains("two.safetensors"));
    CHECK(weights.find("three") == nullptr);
  }
  test::write_file(index, R"({"weight_map": {"one": "three.safetensors"}})");
  refused(folder.path(), "expected the file 'three.safetensors', which has tensor 'one'");
  test::write_file(index, R"({"weight_map": {"two": "one.safetensors"}})");
  refused(folder.path(), "one.safetensors: expected tensor 'two', as the index says");
  test::write_file(index, R"({"weight_map": {"one": "../one.safetensors"}})");
  refused(folder.path(), "a file beside the index");
  test::write_file(index, R"({"weight_map": {"one": 1}})");
  refused(folder.path(), "a file beside the index");
  test::write_file(index, "{}");
  refused(folder.path(), "weight_map");
  test::write_file(index, "");
  refused(folder.path(), "index.json");
  test::write_file(folder / "model.safetensors", named("whole"));
  CHECK(Weights(folder.path()).find("whole") != nullptr);
}
