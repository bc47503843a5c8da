// SPDX-License-Identifier: BSD-3-Clause
// Pickles written by hand, value by value.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace reshard::test::pickled {

inline std::string pickle(const std::string& value) { return "\x80\x04" + value + "."; }

inline std::string text(const std::string& value) {
  return "\x8c" + std::string(1, static_cast<char>(value.size())) + value;
}
inline std::string number(int value) {
  return "M" + std::string{static_cast<char>(value & 0xff), static_cast<char>(value >> 8)};
}
inline std::string joined(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += value;
  return out;
}
inline std::string list(const std::vector<std::string>& values) {
  return "](" + joined(values) + "e";
}
inline std::string tuple(const std::vector<std::string>& values) {
  return "(" + joined(values) + "t";
}
using Entries = std::vector<std::pair<std::string, std::string>>;
inline std::string dict(const Entries& entries) {
  std::string out = "}(";
  for (const auto& [key, value] : entries) out += key + value;
  return out + "u";
}
inline std::string global(const std::string& module, const std::string& name) {
  return text(module) + text(name) + "\x93";
}
// A call of it.
inline std::string made(const std::string& callee, const std::vector<std::string>& arguments) {
  return callee + tuple(arguments) + "R";
}
// Made without arguments, then given a state.
inline std::string object(const std::string& type, const std::string& state) {
  return type + ")\x81" + state + "b";
}

}  // namespace reshard::test::pickled
