// SPDX-License-Identifier: BSD-3-Clause
// What gzip files unpack to, whole, joined, and damaged at every byte.
#include <zlib.h>

#include <catch2/catch.hpp>

#include <sstream>
#include <string>

#include "core/base/errors.h"
#include "sim/inputs/gzip_input.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

std::string packed(const std::string& text) {
  z_stream state{};
  REQUIRE(deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string in = text, out(text.size() + 1000, '\0');
  state.next_in = reinterpret_cast<Bytef*>(in.data());
  state.avail_in = static_cast<uInt>(in.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&state, Z_FINISH) == Z_STREAM_END);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

std::string unpacked(const std::string& bytes) {
  std::istringstream in(bytes);
  std::string out;
  sim::with_unpacked(in, "f.gz", [&](std::istream& text) {
    char block[999];
    while (text.good()) {
      text.read(block, sizeof block);
      out.append(block, static_cast<std::size_t>(text.gcount()));
    }
  });
  return out;
}

}  // namespace

TEST_CASE("Text is read as it is, packed or not") {
  CHECK(unpacked("") == "");
  CHECK(unpacked("a\nb") == "a\nb");
  CHECK(unpacked(packed("")) == "");
  CHECK(unpacked(packed("a\n") + packed("") + packed("b")) == "a\nb");
  Prng prng(1);
  std::string large;
  for (int i = 0; i < 300'000; ++i) large += static_cast<char>('a' + prng.below(26));
  CHECK(unpacked(packed(large)) == large);
  CHECK(unpacked(packed(large) + packed(large)) == large + large);
}

TEST_CASE("A damaged gzip file is refused, wherever it is cut or changed") {
  Prng prng(2);
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>('a' + prng.below(4));
  const std::string whole = packed(text);
  for (std::size_t cut = 1; cut < whole.size(); ++cut)
    CHECK_THROWS_WITH(unpacked(whole.substr(0, cut)),
                      Catch::Contains("f.gz: expected a whole gzip file"));
  int refused = 0;
  for (std::size_t at = 1; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    try {
      // The header has bytes that say nothing of the text: when it was packed, and where.
      std::string found = unpacked(changed);
      CHECK(found == text);
    } catch (const InputError&) {
      ++refused;
    }
  }
  CHECK(refused > static_cast<int>(whole.size()) - 10);
  CHECK_THROWS_WITH(unpacked(whole + "more"), Catch::Contains("damaged"));
}
