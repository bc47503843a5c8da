// SPDX-License-Identifier: BSD-3-Clause
// The reader of texts: what it consumes, where it stops, and its error messages.
#include <catch2/catch.hpp>

#include "core/base/cursor.h"
#include "core/base/errors.h"

using namespace reshard;
using Catch::Matchers::Message;

TEST_CASE("lines end with either end, the last one without, a mark at the front is no text") {
  std::string_view text = "a\r\n\nb\rc\n\r\nd";
  std::vector<std::string> lines;
  while (!text.empty()) lines.emplace_back(take_line(text));
  CHECK(lines == std::vector<std::string>{"a", "", "b\rc", "", "d"});
  CHECK(take_line(text).empty());
  CHECK(after_byte_order_mark("\xef\xbb\xbfx") == "x");
  CHECK(after_byte_order_mark("\xef\xbbx") == "\xef\xbbx");
}

TEST_CASE("quoted text shows what cannot be printed and has an end at 40 bytes") {
  CHECK(quoted("\x1f\x20\x7e\x7f\x80") == R"('\x1f ~\x7f\x80')");
  CHECK(quoted("a b\n\x7f", 2) == "'a ...'");
  CHECK(quoted(std::string(40, 'x')) == "'" + std::string(40, 'x') + "'");
  CHECK(quoted(std::string(41, 'x')) == "'" + std::string(40, 'x') + "...'");
}

TEST_CASE("a word starts with a letter or '_' and goes on with digits, '-' and '.', too") {
  for (const char* word : {"a", "z", "A", "Z", "_", "aZ", "b0", "b9", "b-", "b.", "b_", "n-1.x"}) {
    CAPTURE(word);
    CHECK(Cursor(word, "f").word() == word);
    std::string more = std::string(word) + " b";
    CHECK(Cursor(more, "f").word() == word);
  }
  for (const char* none : {"", "0a", "9", "-a", ".a", "@", "[", "`", "{", "/", ":"}) {
    CAPTURE(none);
    CHECK(Cursor(none, "f").word().empty());
    std::string behind = std::string("b") + none;
    if (std::string_view("@[`{/:").find(none) != std::string_view::npos && *none != 0)
      CHECK(Cursor(behind, "f").word() == "b");
  }
}

TEST_CASE("an integer is taken up to both ends of its range") {
  auto read = [](const char* text) {
    Cursor cursor(text, "--n");
    std::int64_t value = cursor.integer("a number", -2, 300);
    return std::pair(value, std::string(cursor.rest()));
  };
  CHECK(read("-2") == std::pair(std::int64_t{-2}, std::string()));
  CHECK(read("300x7") == std::pair(std::int64_t{300}, std::string("x7")));
  for (const char* outside : {"-3", "301", "99999999999999999999"})
    CHECK_THROWS_MATCHES(
        read(outside), InputError,
        Message(std::string("--n: expected a number between -2 and 300, found '") + outside + "'"));
  CHECK_THROWS_MATCHES(read("x"), InputError,
                       Message("--n: expected a number (an integer), found 'x'"));
  CHECK_THROWS_MATCHES(read(""), InputError,
                       Message("--n: expected a number (an integer), found the end"));
}

TEST_CASE("tokens are taken whole or not at all") {
  Cursor cursor(" \t ab'c'\"d\"(1, 2,)x", "f");
  cursor.skip_spaces();
  CHECK_FALSE(cursor.accept("abc"));
  CHECK(cursor.accept("ab"));
  CHECK(cursor.quoted_word() == "c");
  CHECK_THROWS_MATCHES(Cursor("'c\"", "f").quoted_word(), InputError,
                       Message("f: expected ''', found '\"'"));
  CHECK(cursor.quoted_word() == "d");
  std::int64_t sum = 0;
  cursor.tuple([&] { sum = 10 * sum + cursor.integer("a number", 0, 9); });
  CHECK(sum == 12);
  CHECK_FALSE(cursor.at_end());
  CHECK_THROWS_MATCHES(cursor.expect_end(), InputError, Message("f: expected the end, found 'x'"));
  cursor.expect("x");
  CHECK(cursor.at_end());
  CHECK(cursor.peek() == '\0');
  CHECK_THROWS_MATCHES(cursor.expect("y"), InputError, Message("f: expected 'y', found the end"));
  CHECK_NOTHROW(cursor.expect_end());
}

TEST_CASE("errors say where they come from") {
  CHECK(std::string(InputError("mesh: bad").in("a.jsonl:3").what()) == "a.jsonl:3: mesh: bad");
  CHECK(std::string(BackendError("MPI", "MPI_Init", "MPI_ERR_OTHER", -1).what()) ==
        "MPI: MPI_Init failed: MPI_ERR_OTHER");
  CHECK(std::string(BackendError("CUDA", "cudaMalloc", "out of memory", 0).what()) ==
        "CUDA: cudaMalloc failed on rank 0: out of memory");
}
