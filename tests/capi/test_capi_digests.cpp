// SPDX-License-Identifier: BSD-3-Clause
// Digests from C: of buffers of one rank, gathered; and that nothing wrong gets through.
#include <reshard/reshard.h>
#include <catch2/catch.hpp>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using Catch::Matchers::Contains;

namespace {

constexpr const char* kCopies = "traces/checks/qkv.copies";

struct Taken {
  std::int32_t code;
  std::string text, error;
};

Taken taken(std::int32_t code, char* text, std::int64_t bytes) {
  Taken out{code, {}, {}};
  if (text != nullptr) out.text.assign(text, static_cast<std::size_t>(bytes));
  if (code != RESHARD_OK) out.error = reshard_last_error();
  reshard_text_free(text);
  return out;
}

reshard_held_buffer held(const char* name, const std::vector<char>& bytes) {
  reshard_held_buffer out = RESHARD_INIT(reshard_held_buffer);
  out.name = name;
  out.data = bytes.data();
  out.bytes = static_cast<std::int64_t>(bytes.size());
  return out;
}

Taken digested(const std::vector<reshard_held_buffer>& buffers, std::int32_t rank = 1,
               const char* side = "to", const char* layouts = kCopies, std::int64_t rows = 0) {
  char* text = nullptr;
  std::int64_t bytes = 0;
  std::int32_t code =
      reshard_digest_buffers(layouts, side, rank, rows, buffers.data(),
                             static_cast<std::int32_t>(buffers.size()), &text, &bytes);
  return taken(code, text, bytes);
}

Taken gather(const std::vector<const char*>& texts) {
  char* text = nullptr;
  std::int64_t bytes = 0;
  std::int32_t code =
      reshard_digest_gather(texts.data(), static_cast<std::int32_t>(texts.size()), &text, &bytes);
  return taken(code, text, bytes);
}

void check_refused(const Taken& result, const std::string& what) {
  CHECK(result.code == RESHARD_INPUT_ERROR);
  CHECK(result.text.empty());
  CHECK_THAT(result.error, Contains(what));
}

}  // namespace

TEST_CASE("a rank's digests are made and gathered") {
  std::vector<char> bytes(48, 7);
  Taken one = digested({held("qkv_proj.weight", bytes)});
  REQUIRE(one.code == RESHARD_OK);
  nlohmann::json json = nlohmann::json::parse(one.text);
  CHECK(json["reshard_digest"] == 1);
  CHECK(json["parts"].size() == 3);
  Taken other = digested({held("qkv_proj.weight", bytes)}, 2);
  Taken both = gather({one.text.c_str(), other.text.c_str()});
  REQUIRE(both.code == RESHARD_OK);
  CHECK(nlohmann::json::parse(both.text)["parts"].size() == 6);
  CHECK(gather({both.text.c_str()}).text == both.text);
  CHECK(nlohmann::json::parse(digested({}).text)["parts"].empty());
}

TEST_CASE("wrong arguments of digests are refused") {
  std::vector<char> bytes(48, 7), shorter(47, 7);
  reshard_held_buffer right = held("qkv_proj.weight", bytes);
  check_refused(digested({held("qkv_proj.weight", shorter)}), "expected 48 bytes");
  check_refused(digested({held("w", bytes)}), "found 'w'");
  check_refused(digested({right, right}), "found 'qkv_proj.weight' twice");
  check_refused(digested({right}, -1), "rank: expected 0 or more");
  check_refused(digested({right}, 7), "those that rank 7 has");
  check_refused(digested({right}, 1, "both"), "side: expected from or to, found 'both'");
  check_refused(digested({right}, 1, nullptr), "side: expected a pointer");
  check_refused(digested({right}, 1, "to", "none"), "none: expected layouts");
  check_refused(digested({right}, 1, "to", nullptr), "layouts: expected a pointer");
  check_refused(digested({right}, 1, "to", kCopies, -1), "rows: expected 0 or more");
  reshard_held_buffer wrong = right;
  wrong.name = nullptr;
  check_refused(digested({wrong}), "buffers.name: expected a pointer");
  wrong = right;
  wrong.data = nullptr;
  check_refused(digested({wrong}), "expected memory of 48 bytes, found NULL");
  wrong = right;
  wrong.bytes = -1;
  check_refused(digested({wrong}), "expected memory of -1 bytes");
  wrong = right;
  wrong.struct_size = 0;
  check_refused(digested({wrong}), "buffers");
  wrong = right;
  wrong.reserved = 1;
  check_refused(digested({wrong}), "buffers.reserved: expected 0");
  CHECK(reshard_digest_buffers(kCopies, "to", 1, 0, nullptr, 1, nullptr, nullptr) ==
        RESHARD_INPUT_ERROR);
  check_refused(gather({}), "count: expected 1 or more");
  check_refused(gather({nullptr}), "texts: expected a pointer");
  check_refused(gather({""}), "digests 0: expected digests");
}
