// SPDX-License-Identifier: BSD-3-Clause
// Reads Python's pickles, protocols 2 to 5, without running anything. A pickle names functions and
// their arguments, which Python's own reader calls. This reader accepts only names on a list, and
// keeps the arguments as a value.
//
// Values are in one list and refer to each other by number, so that what a pickle shares stays
// shared. A value can contain itself, so code that descends into a pickle must limit the depth.
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
    Global,  // text: its name, "bfloat16" of module torch; number: its index in the list of names
    Object,  // text: the name of its class or function; entries: the tuple of arguments, the state
  };
  Kind kind = Kind::None;
  std::uint32_t list = 0;  // the number of its list of entries
  std::int64_t number = 0;
  std::string_view text = {};
};

// A name that a pickle may contain.
struct PickleGlobal {
  std::string_view module, name;
  bool is_callable;  // a class or function that makes values
};

class Pickle {
 public:
  // Keeps views of `bytes` and `globals`. `place` names the file in messages. Throws InputError if
  // this is not a pickle of these protocols, and for other names, integers of more than 64 bits,
  // and more than 2^25 values.
  Pickle(std::string_view bytes, std::span<const PickleGlobal> globals, const std::string& place);

  PickleId root() const { return root_; }
  const PickleValue& operator[](PickleId id) const { return values_[id]; }
  // The entries of a list, tuple, dict or object; empty for other values.
  std::span<const PickleId> entries(PickleId id) const;
  // The value of a text key in a dict; the last one if the key is repeated, as in Python.
  std::optional<PickleId> find(PickleId dict, std::string_view key) const;
  // The tuple of arguments that an object is made from.
  PickleId arguments(PickleId object) const { return entries(object)[0]; }
  std::optional<PickleId> state(PickleId object) const;
  // A value as messages print it: "'abc'", "17", "a list of 3", "a Size".
  std::string shown(PickleId id) const;

 private:
  friend class PickleReader;

  IndexVector<PickleId, PickleValue> values_;
  std::vector<std::vector<PickleId>> lists_{
      1};  // the first is empty and belongs to every value without entries
  PickleId root_{};
};

}  // namespace reshard::sim
