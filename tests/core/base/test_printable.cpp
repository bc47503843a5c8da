// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include <catch2/catch.hpp>

#include "core/base/printable.h"

using namespace reshard;

TEST_CASE("control characters, line ends and what turns the direction are shown as escapes") {
  CHECK(printable("a\nb\tc\rd") == R"(a\nb\tc\rd)");
  CHECK(printable(std::string_view("\x00\x1b[31m\x7f", 7)) == R"(\x00\x1b[31m\x7f)");
  CHECK(printable("\u0085 \u2028 \u202e \u2066") == R"(\u0085 \u2028 \u202e \u2066)");
  CHECK(printable("\u00a0\u00ad\u061c\u200b\u200f\u2060\ufeff") ==
        R"(\u00a0\u00ad\u061c\u200b\u200f\u2060\ufeff)");
  CHECK(printable("\u00a1 \u200a \u2010 \u2027 \u202f \u206a") ==
        "\u00a1 \u200a \u2010 \u2027 \u202f \u206a");
  CHECK(printable("gr\u00f6\u00dfe \u4e2d \U0001f600 ~\x20") ==
        "gr\u00f6\u00dfe \u4e2d \U0001f600 ~ ");
  CHECK(printable("") == "");
}

TEST_CASE("bytes that are no UTF-8 are shown one by one") {
  CHECK(printable("a\xff\xfez") == R"(a\xff\xfez)");
  CHECK(printable("\xc3") == R"(\xc3)");          // cut short
  CHECK(printable("\xc3(") == R"(\xc3()");        // not continued
  CHECK(printable("\xc0\xaf") == R"(\xc0\xaf)");  // longer than need be
  CHECK(printable("\xe0\x80\xaf") == R"(\xe0\x80\xaf)");
  CHECK(printable("\xed\xa0\x80") == R"(\xed\xa0\x80)");  // half a pair
  CHECK(printable("\xf4\x90\x80\x80") == R"(\xf4\x90\x80\x80)");
  CHECK(printable("\xf4\x8f\xbf\xbf") == "\xf4\x8f\xbf\xbf");
  CHECK(printable("\x80") == R"(\x80)");
}

TEST_CASE("long text is cut between characters") {
  CHECK(printable("abcd", 4) == "abcd");
  CHECK(printable("abcde", 4) == "abcd...");
  CHECK(printable("abc\u00f6", 5) == "abc\u00f6");
  CHECK(printable("abc\u00f6", 4) == "abc...");
  CHECK(printable("\u00f6", 0) == "...");
  CHECK(printable(std::string(60'000, 'x'), 40).size() == 43);
}

TEST_CASE("lines may stay lines") {
  CHECK(printable_lines("a\n\x1b"
                        "b") ==
        "a\n\\x1b"
        "b");
  CHECK(printable_lines("a\nbcd", 3) == "a\nb...");
}

TEST_CASE("of a long path the beginning and the end are shown") {
  CHECK(shown_path("a\nb.json") == R"(a\nb.json)");
  std::string whole(200, 'd');
  CHECK(shown_path(whole) == whole);
  std::string path = std::string(80, 'a') + std::string(50, 'b') + std::string(100, 'c');
  CHECK(shown_path(path) == std::string(80, 'a') + "..." + std::string(100, 'c'));
  // The end begins within a character.
  std::string cut = std::string(200, 'a') + "\u00f6" + std::string(99, 'c');
  CHECK(shown_path(cut) == std::string(80, 'a') + "..." + std::string(99, 'c'));
}

TEST_CASE("the first character and its code") {
  CHECK(first_character("A").bytes == 1);
  CHECK(first_character("\u00f6x").bytes == 2);
  CHECK(first_character("\u00f6x").code == 0xF6);
  CHECK(first_character("\u20ac").code == 0x20AC);
  CHECK(first_character("\U0001f600").code == 0x1F600);
  CHECK(first_character("\U0001f600").bytes == 4);
  CHECK(first_character("\xfe").bytes == 0);
}
