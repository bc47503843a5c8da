// SPDX-License-Identifier: BSD-3-Clause
// Pickles: the values that their opcodes make, and refusals of everything that would run.
#include <bit>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/models/files/pickle.h"
#include "tests/sim/models/files/pickle_text.h"
#include "tests/support/part.h"

namespace reshard::sim::pickle_tests {

using namespace std::string_literals;
using Catch::Matchers::Contains;
namespace pickled = reshard::test::pickled;
using Kind = PickleValue::Kind;

namespace {

constexpr PickleGlobal kGlobals[] = {
    {"torch", "Size", true}, {"torch", "bfloat16", false}, {"collections", "OrderedDict", true}};

Pickle parsed(const std::string& bytes) { return Pickle(bytes, kGlobals, "p"); }

// Of a value without views, as the bytes are gone.
PickleValue root(const std::string& value) {
  Pickle pickle = parsed(pickled::pickle(value));
  PickleValue out = pickle[pickle.root()];
  out.text = {};
  return out;
}

void check_refused(const std::string& bytes, const std::string& what) {
  CAPTURE(what);
  CHECK_THROWS_WITH(parsed(bytes), Contains("p: ") && Contains(what));
  CHECK_THROWS_AS(parsed(bytes), InputError);
}

}  // namespace

TEST_CASE("numbers of a pickle in all widths") {
  CHECK(root("N").kind == Kind::None);
  CHECK(root("\x88").number == 1);
  CHECK(root("\x89").kind == Kind::Bool);
  CHECK(root("K\xff"s).number == 255);
  CHECK(root("M\x01\x02"s).number == 0x201);
  CHECK(root("J\xfe\xff\xff\xff"s).number == -2);
  CHECK(root("\x8a\x00"s).number == 0);
  CHECK(root("\x8a\x01\x80"s).number == -128);
  CHECK(root("\x8a\x02\x80\x00"s).number == 128);
  CHECK(root("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s).number == INT64_MIN);
  CHECK(root("\x8b\x02\x00\x00\x00\xff\xff"s).number == -1);
  CHECK(std::bit_cast<double>(root("G\x3f\xf8\x00\x00\x00\x00\x00\x00"s).number) == 1.5);
  check_refused(pickled::pickle("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"s),
                "byte 2: expected integers of at most 64 bits, found a larger one");
}

TEST_CASE("texts, lists, tuples and dicts of a pickle") {
  const std::string bytes = pickled::pickle(pickled::tuple(
      {pickled::text("a\xc3\xa9"), "X\x02\x00\x00\x00xy"s, "\x8d\x01\x00\x00\x00\x00\x00\x00\x00z"s,
       "C\x02\x00\xff"s, "]K\x01"s + "aK\x02"s + "a", "K\x05\x85"s, "K\x05K\x06\x86"s, "NNN\x87"s,
       ")", pickled::dict({{pickled::text("k"), "K\x07"s}}), "}K\x01"s + "Ns", pickled::list({}),
       "(NN1\x88"s}));
  Pickle pickle = parsed(bytes);
  auto entries = pickle.entries(pickle.root());
  REQUIRE(entries.size() == 13);
  CHECK(pickle[entries[0]].text == "a\xc3\xa9");
  CHECK(pickle[entries[1]].text == "xy");
  CHECK(pickle[entries[2]].text == "z");
  CHECK(pickle[entries[3]].kind == Kind::Bytes);
  CHECK(pickle[entries[3]].text == "\x00\xff"s);
  CHECK(pickle.shown(entries[4]) == "a list of 2");
  CHECK(pickle[pickle.entries(entries[4])[1]].number == 2);
  CHECK(pickle.shown(entries[5]) == "a tuple of 1");
  CHECK(pickle[pickle.entries(entries[6])[0]].number == 5);
  CHECK(pickle.shown(entries[7]) == "a tuple of 3");
  CHECK(pickle.entries(entries[8]).empty());
  CHECK(pickle[pickle.find(entries[9], "k").value()].number == 7);
  CHECK_FALSE(pickle.find(entries[10], "k"));
  CHECK_FALSE(pickle.find(entries[11], "k"));
  CHECK(pickle[entries[12]].number == 1);
}

TEST_CASE("what a pickle keeps under a number is shared, and can contain itself") {
  const std::string bytes = pickled::pickle("(]q\x00K\x01"s + "ah\x00h\x00t"s);
  Pickle pickle = parsed(bytes);
  auto entries = pickle.entries(pickle.root());
  REQUIRE(entries.size() == 3);
  CHECK(entries[0] == entries[2]);
  CHECK(pickle.entries(entries[2]).size() == 1);
  const std::string own = pickled::pickle("]\x94h\x00"s + "a");
  Pickle cycle = parsed(own);
  CHECK(cycle.entries(cycle.root())[0] == cycle.root());
  CHECK(cycle.shown(cycle.root()) == "a list of 1");
  // Behind 256 others, and under a number that another one had.
  std::string many = "(";
  for (int i = 0; i < 256; ++i) many += "N\x94";
  const std::string wide =
      pickled::pickle(many + "K\x07r\x00\x01\x00\x00q\x05h\x05j\x00\x01\x00\x00t"s);
  Pickle numbered = parsed(wide);
  auto last = numbered.entries(numbered.root()).last(3);
  CHECK(numbered[last[0]].number == 7);
  CHECK(last[1] == last[0]);
  CHECK(last[2] == last[0]);
  check_refused(pickled::pickle("Nq\x01"s), "expected 0 as the number of a value to keep, found 1");
  check_refused(pickled::pickle("h\x05"s),
                "expected a value that was kept, found none of number 5");
}

TEST_CASE("calls and states of a pickle are kept as values") {
  const std::string size = pickled::made("ctorch\nSize\n", {pickled::tuple({"K\x04"s, "K\x02"s})});
  const std::string bytes = pickled::pickle(
      pickled::tuple({size, pickled::object(pickled::global("torch", "Size"), pickled::dict({})),
                      pickled::global("torch", "bfloat16"),
                      pickled::global("collections", "OrderedDict") + ")R(K\x01Nu"s}));
  Pickle pickle = parsed(bytes);
  auto entries = pickle.entries(pickle.root());
  REQUIRE(entries.size() == 4);
  CHECK(pickle.shown(entries[0]) == "a Size");
  CHECK_FALSE(pickle.state(entries[0]));
  CHECK(pickle.entries(pickle.entries(pickle.arguments(entries[0]))[0]).size() == 2);
  CHECK(pickle[pickle.state(entries[1]).value()].kind == Kind::Dict);
  CHECK(pickle.shown(entries[2]) == "bfloat16");
  CHECK(pickle.shown(entries[3]) == "a dict of 1");
}

TEST_CASE("a pickle that would run something is refused by its name") {
  for (const std::string& name : {"cos\nsystem\n"s, pickled::global("os", "system")})
    check_refused(pickled::pickle(pickled::made(name, {pickled::text("touch ran")})),
                  "os.system, which is not used");
  check_refused(pickled::pickle(pickled::global("builtins", "eval")), "found builtins.eval");
  check_refused(pickled::pickle(pickled::global("torch", "Size.__reduce__")), "torch.Size.__red");
  check_refused("\x80\x02(S'ls'\nios\nsystem\n."s, "found opcode STRING");
  check_refused("\x80\x02(ios\nsystem\n."s, "found opcode INST");
  check_refused("\x80\x02(U\x02lso."s, "found opcode SHORT_BINSTRING");
  check_refused("\x80\x04Q."s, "found opcode BINPERSID");
  check_refused("\x80\x04\x82\x01."s, "found opcode EXT1");
  check_refused("\x80\x05\x97."s, "found opcode NEXT_BUFFER");
  check_refused("\x80\x04\xfe."s, "found byte 0xfe");
  // Only what the reader's list calls a class is called.
  check_refused(pickled::pickle(pickled::made(pickled::global("torch", "bfloat16"), {})),
                "expected a class to make a value of, found bfloat16");
  check_refused(pickled::pickle(pickled::made(pickled::text("torch.Size"), {})),
                "expected a class to make a value of, found 'torch.Size'");
  check_refused(pickled::pickle(pickled::global("torch", "Size") + "]R"),
                "expected a tuple of arguments, found a list of 0");
}

TEST_CASE("pickles that are damaged are refused") {
  check_refused("", "expected a pickle of protocol 2 to 5, found an empty file");
  check_refused("\x80\x01."s, "expected a pickle of protocol 2 to 5, found none");
  check_refused("\x80\x06."s, "expected a pickle of protocol 2 to 5, found none");
  check_refused("{\"a\": 1}", "expected a pickle of protocol 2 to 5, found none");
  check_refused("\x80\x04N", "byte 3: expected more of the pickle, found the end of the file");
  check_refused("\x80\x04N.N", "expected the end of the file after the pickle, found 1 bytes more");
  check_refused("\x80\x04."s, "expected a value before it, found none");
  check_refused("\x80\x04N(."s, "expected a value before it, found none");
  check_refused("\x80\x04Nt."s, "expected a mark before it, found none");
  check_refused("\x80\x04NNa."s, "expected a list to append to, found None");
  check_refused("\x80\x04](NNu."s, "expected a dict to add to, found a list of 0");
  check_refused("\x80\x04}(Nu."s, "expected a value for each key, found none");
  check_refused("\x80\x04NNb."s, "expected an object without a state, found None");
  check_refused("\x80\x04X\xff\xff\xff\xff."s, "expected more of the pickle");
  check_refused("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s, "expected more of the pickle");
  check_refused("\x80\x04NN\x93."s, "expected the names of a module and of what is in it");
  check_refused("\x80\x04"s + "ctorch\nSize", "expected more of the pickle");
}

TEST_CASE("a pickle of too many values is refused") {
  if (test::kOneOf > 1) return;  // it takes seconds, and much more under sanitizers
  const std::string bytes = "\x80\x04("s + std::string((std::size_t{1} << 25) + 1, ')') + "t.";
  CHECK_THROWS_WITH(parsed(bytes), Contains("expected at most 33554432 values, found more"));
}

}  // namespace reshard::sim::pickle_tests
