// SPDX-License-Identifier: BSD-3-Clause
// The stack machine that reads a pickle: one function for each group of opcodes.
#include "sim/models/files/pickle.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"
#include "sim/models/files/pickle_opcodes.h"

namespace reshard::sim {
namespace {

using Kind = PickleValue::Kind;

// A limit on values, list entries, the memo (numbered values), and the depth of the stack, each.
constexpr std::size_t kMostValues = std::size_t{1} << 25;

// Opcodes of texts and bytes, which begin with the length in so many bytes.
struct TextOpcode {
  unsigned char opcode;
  Kind kind;
  std::uint64_t width;
};
constexpr TextOpcode kTextOpcodes[] = {
    {op::kShortBinUnicode, Kind::Text, 1}, {op::kBinUnicode, Kind::Text, 4},
    {op::kBinUnicode8, Kind::Text, 8},     {op::kShortBinBytes, Kind::Bytes, 1},
    {op::kBinBytes, Kind::Bytes, 4},       {op::kBinBytes8, Kind::Bytes, 8},
    {op::kByteArray8, Kind::Bytes, 8},
};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    out |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return out;
}

// Two's complement of 1 to 8 bytes.
std::int64_t signed_of(std::string_view bytes) {
  std::uint64_t out = little_endian(bytes);
  if (bytes.size() < 8 && (out >> (8 * bytes.size() - 1) & 1) != 0)
    out |= ~std::uint64_t{0} << (8 * bytes.size());
  return static_cast<std::int64_t>(out);
}

}  // namespace

class PickleReader {
 public:
  PickleReader(Pickle& out, std::string_view bytes, std::span<const PickleGlobal> globals,
               const std::string& place)
      : out_(out), bytes_(bytes), globals_(globals), place_(place) {}

  void read() {
    if (bytes_.size() < 2 || bytes_[0] != '\x80' || bytes_[1] < 2 || bytes_[1] > 5)
      throw InputError(fmt::format("{}: expected a pickle of protocol 2 to 5, found {}", place_,
                                   bytes_.empty() ? "an empty file" : "none"));
    for (at_ = 2; !done_;) {
      start_ = at_;
      auto opcode = static_cast<unsigned char>(take(1).front());
      if (!scalar(opcode) && !container(opcode) && !memo(opcode) && !object(opcode))
        fail("an opcode that metadata of checkpoints has", opcode_name(opcode));
    }
    if (at_ != bytes_.size())
      fail("the end of the file after the pickle",
           fmt::format("{} bytes more", bytes_.size() - at_));
  }

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw InputError(
        fmt::format("{}: byte {}: expected {}, found {}", place_, start_, expected, found));
  }

  // ---- bytes

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("more of the pickle", "the end of the file");
    std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  // A number of this width, then as many bytes as it states.
  std::string_view take_sized(std::uint64_t width) { return take(little_endian(take(width))); }
  std::string_view take_line() {
    std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("more of the pickle", "the end of the file");
    std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  // ---- the stack

  void push(PickleId id) {
    if (stack_.size() >= kMostValues) fail_many();
    stack_.push_back(id);
  }
  void add(const PickleValue& value) {
    if (out_.values_.size() >= kMostValues) fail_many();
    out_.values_.push_back(value);
    push(reshard::id_of<PickleId>(out_.values_.size() - 1));
  }
  [[noreturn]] void fail_many() const {
    fail(fmt::format("at most {} values", kMostValues), "more");
  }
  PickleId pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("a value before it", "none");
    PickleId out = stack_.back();
    stack_.pop_back();
    return out;
  }
  PickleValue& top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("a value before it", "none");
    return out_.values_[stack_.back()];
  }
  // Takes the values above the last mark, and the mark.
  std::vector<PickleId> pop_marked() {
    if (marks_.empty()) fail("a mark before it", "none");
    auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleId> out(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return out;
  }
  void add_entries(PickleValue& value, std::span<const PickleId> entries) {
    if (entries.empty()) return;
    entries_ += entries.size();
    if (entries_ > kMostValues) fail_many();
    if (value.list == 0) {
      value.list = static_cast<std::uint32_t>(out_.lists_.size());
      out_.lists_.emplace_back();
    }
    auto& list = out_.lists_[value.list];
    list.insert(list.end(), entries.begin(), entries.end());
  }
  void add_with(PickleValue value, std::span<const PickleId> entries) {
    add_entries(value, entries);
    add(value);
  }

  // ---- groups of opcodes; each returns false for an opcode of another group

  void push_text(Kind kind, std::string_view text) { add({kind, 0, 0, text}); }
  void push_int(std::int64_t number) { add({Kind::Int, 0, number}); }
  void push_long(std::uint64_t width) {
    std::string_view bytes = take_sized(width);
    if (bytes.size() > 8) fail("integers of at most 64 bits", "a larger one");
    push_int(bytes.empty() ? 0 : signed_of(bytes));
  }

  bool scalar(unsigned char opcode) {
    for (const TextOpcode& each : kTextOpcodes)
      if (each.opcode == opcode) {
        push_text(each.kind, take_sized(each.width));
        return true;
      }
    switch (opcode) {
      case op::kNone:
        add(PickleValue{});
        return true;
      case op::kNewTrue:
        add({Kind::Bool, 0, 1});
        return true;
      case op::kNewFalse:
        add({Kind::Bool, 0, 0});
        return true;
      case op::kBinInt:
        push_int(signed_of(take(4)));
        return true;
      case op::kBinInt1:
        push_int(static_cast<std::int64_t>(little_endian(take(1))));
        return true;
      case op::kBinInt2:
        push_int(static_cast<std::int64_t>(little_endian(take(2))));
        return true;
      case op::kLong1:
        push_long(1);
        return true;
      case op::kLong4:
        push_long(4);
        return true;
      case op::kBinFloat:
        read_float();
        return true;
      default:
        return false;
    }
  }

  // Floats are big-endian, unlike all other numbers.
  void read_float() {
    std::string bytes(take(8));
    std::reverse(bytes.begin(), bytes.end());
    add({Kind::Float, 0, signed_of(bytes)});
  }

  bool container(unsigned char opcode) {
    switch (opcode) {
      case op::kMark:
        if (marks_.size() >= kMostValues) fail_many();
        marks_.push_back(stack_.size());
        return true;
      case op::kEmptyList:
        add({Kind::List});
        return true;
      case op::kEmptyDict:
        add({Kind::Dict});
        return true;
      case op::kEmptyTuple:
        add({Kind::Tuple});
        return true;
      case op::kTuple:
        add_with({Kind::Tuple}, pop_marked());
        return true;
      case op::kTuple1:
        push_last(1);
        return true;
      case op::kTuple2:
        push_last(2);
        return true;
      case op::kTuple3:
        push_last(3);
        return true;
      case op::kAppend:
        add_to(Kind::List, pop_last(1));
        return true;
      case op::kAppends:
        add_to(Kind::List, pop_marked());
        return true;
      case op::kSetItem:
        add_to(Kind::Dict, pop_last(2));
        return true;
      case op::kSetItems:
        add_to(Kind::Dict, pop_marked());
        return true;
      default:
        return false;
    }
  }

  std::vector<PickleId> pop_last(int count) {
    std::vector<PickleId> out;
    for (int i = 0; i < count; ++i) out.push_back(pop());
    std::reverse(out.begin(), out.end());
    return out;
  }
  void push_last(int count) { add_with({Kind::Tuple}, pop_last(count)); }
  void add_to(Kind kind, const std::vector<PickleId>& entries) {
    if (top().kind != kind)
      fail(kind == Kind::List ? "a list to append to" : "a dict to add to",
           out_.shown(stack_.back()));
    if (kind == Kind::Dict && entries.size() % 2 != 0) fail("a value for each key", "none");
    add_entries(top(), entries);
  }

  bool memo(unsigned char opcode) {
    switch (opcode) {
      case op::kBinPut:
        put(little_endian(take(1)));
        return true;
      case op::kLongBinPut:
        put(little_endian(take(4)));
        return true;
      case op::kMemoize:
        put(memo_.size());
        return true;
      case op::kBinGet:
        get(little_endian(take(1)));
        return true;
      case op::kLongBinGet:
        get(little_endian(take(4)));
        return true;
      case op::kPop:
        drop();
        return true;
      case op::kPopMark:
        pop_marked();
        return true;
      case op::kProto:
        take(1);
        return true;
      case op::kFrame:
        take(8);
        return true;
      case op::kStop:
        out_.root_ = pop();
        done_ = true;
        return true;
      default:
        return false;
    }
  }
  // Python numbers memo entries consecutively.
  void put(std::uint64_t key) {
    top();
    if (memo_.size() >= kMostValues) fail_many();
    if (key > memo_.size())
      fail(fmt::format("{} as the number of a value to keep", memo_.size()), fmt::to_string(key));
    if (key == memo_.size()) memo_.emplace_back();
    memo_[key] = stack_.back();
  }
  void get(std::uint64_t key) {
    if (key >= memo_.size()) fail("a value that was kept", fmt::format("none of number {}", key));
    push(memo_[key]);
  }
  // Drops the top value, or a mark if nothing follows it.
  void drop() {
    if (!marks_.empty() && marks_.back() == stack_.size())
      marks_.pop_back();
    else
      pop();
  }

  bool object(unsigned char opcode) {
    switch (opcode) {
      case op::kGlobal: {
        std::string_view module = take_line();
        push_global(module, take_line());
        return true;
      }
      case op::kStackGlobal: {
        PickleId name = pop(), module = pop();
        if (out_[name].kind != Kind::Text || out_[module].kind != Kind::Text)
          fail("the names of a module and of what is in it", out_.shown(name));
        push_global(out_[module].text, out_[name].text);
        return true;
      }
      case op::kNewObject:
      case op::kReduce:
        make();
        return true;
      case op::kBuild:
        build();
        return true;
      default:
        return false;
    }
  }

  void push_global(std::string_view module, std::string_view name) {
    for (std::size_t i = 0; i < globals_.size(); ++i)
      if (globals_[i].module == module && globals_[i].name == name)
        return add({Kind::Global, 0, static_cast<std::int64_t>(i), globals_[i].name});
    fail("names of PyTorch's metadata alone",
         fmt::format("{}, which is not used", printable(fmt::format("{}.{}", module, name), 200)));
  }

  // Records a call with a tuple of arguments, without making it.
  void make() {
    PickleId arguments = pop(), callee = pop();
    const PickleValue& global = out_[callee];
    if (global.kind != Kind::Global || !globals_[to_index(global.number)].is_callable)
      fail("a class to make a value of", out_.shown(callee));
    if (out_[arguments].kind != Kind::Tuple) fail("a tuple of arguments", out_.shown(arguments));
    if (global.text == "OrderedDict" && out_.entries(arguments).empty())
      add({Kind::Dict});
    else
      add_with({Kind::Object, 0, 0, global.text}, std::vector{arguments});
  }

  void build() {
    PickleId state = pop();
    PickleValue& value = top();
    if (value.kind != Kind::Object || out_.entries(stack_.back()).size() != 1)
      fail("an object without a state", out_.shown(stack_.back()));
    add_entries(value, std::vector{state});
  }

  Pickle& out_;
  std::string_view bytes_;
  std::span<const PickleGlobal> globals_;
  const std::string& place_;
  std::size_t at_ = 0, start_ = 0;  // of the next byte; of the opcode
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleId> memo_;
  std::size_t entries_ = 0;  // in all lists
  bool done_ = false;
};

Pickle::Pickle(std::string_view bytes, std::span<const PickleGlobal> globals,
               const std::string& place) {
  PickleReader(*this, bytes, globals, place).read();
}

}  // namespace reshard::sim
