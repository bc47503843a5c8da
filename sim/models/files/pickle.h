// SPDX-License-Identifier: BSD-3-Clause
// A reader of Python's pickles, protocol 2 to 5, that runs nothing. A pickle names functions and
// their arguments, and Python's own reader calls them. Here a name must be on the reader's list,
// and what it would be called with is kept as a value.
//
// Values are kept in one list and name each other by number, so that what a pickle shares stays
// shared. A value can contain itself: who walks down a pickle must know how far.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

enum class PickleId : std::uint32_t {};

struct PickleValue {
  enum class Kind : std::uint8_t {
    None,
    Bool,    // number
    Int,     // number
    Float,   // number: the bits of the double
    Text,    // text
    Bytes,   // text
    List,    // entries
    Tuple,   // entries
    Dict,    // entries: key, value, key, value, ...
    Global,  // text: its name, "bfloat16" of the module torch; number: of it in the reader's list
    Object,  // text: the name of what makes it; entries: the tuple of its arguments, its state
  };
  Kind kind = Kind::None;
  std::uint32_t list = 0;  // number of its entries' list
  std::int64_t number = 0;
  std::string_view text = {};
};

// What a pickle may name.
struct PickleGlobal {
  std::string_view module, name;
  bool is_callable;  // a class or function, of which values can be made
};

class Pickle {
 public:
  // Keeps views of `bytes` and `globals`. `place` names the file in messages. Throws InputError for
  // whatever is no pickle of these protocols, other names, integers of more than 64 bits, and more
  // than 2^25 values.
  Pickle(std::string_view bytes, std::span<const PickleGlobal> globals, const std::string& place);

  PickleId root() const { return root_; }
  const PickleValue& operator[](PickleId id) const { return values_[id]; }
  // Of a list, tuple, dict or object; otherwise none.
  std::span<const PickleId> entries(PickleId id) const;
  // What a dict has under a text; the last of several, as in Python.
  std::optional<PickleId> find(PickleId dict, std::string_view key) const;
  // Of an object.
  PickleId arguments(PickleId object) const { return entries(object)[0]; }
  std::optional<PickleId> state(PickleId object) const;
  // A value as messages show it: "'abc'", "17", "a list of 3", "a Size".
  std::string shown(PickleId id) const;

 private:
  friend class PickleReader;

  IndexVector<PickleId, PickleValue> values_;
  std::vector<std::vector<PickleId>> lists_{1};  // the first is empty and nobody's own
  PickleId root_{};
};

}  // namespace reshard::sim
