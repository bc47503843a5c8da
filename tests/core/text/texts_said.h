// SPDX-License-Identifier: BSD-3-Clause
// Everything observable about a text that a reader of core accepts, after it was written and read
// back to the same value. The exception for a refused text passes through.
#pragma once

#include <catch2/catch.hpp>

#include <map>
#include <string>

#include "core/base/digest.h"

namespace reshard::test {

// Two values have one fingerprint exactly where they have one content.
class Fingerprints {
 public:
  void add(const std::string& content, const Digest& fingerprint) {
    auto [by_content, is_new] = of_content_.try_emplace(content, fingerprint);
    CHECK(by_content->second == fingerprint);
    if (is_new) CHECK(of_fingerprint_.try_emplace(fingerprint, content).first->second == content);
  }

 private:
  std::map<std::string, Digest> of_content_;
  std::map<Digest, std::string> of_fingerprint_;
};

// What stands in front of the first line's end, which is taken off with it.
inline std::string take_line(std::string& text) {
  std::string out = text.substr(0, text.find('\n'));
  text.erase(0, out.size() + 1);
  return out;
}

std::string shape_said(const std::string& text);
std::string dtype_said(const std::string& text);
std::string operator_said(const std::string& text);
std::string bytes_said(const std::string& text);
std::string rate_said(const std::string& text);
std::string duration_said(const std::string& text);
std::string ratio_said(const std::string& text);
// The mesh, then its ranks where there is a second line.
std::string mesh_said(std::string text);
// A line of the number of axes, one of that of dims, then placements.
std::string placements_said(std::string text);
// All fields of RequestTexts, a line each.
std::string request_said(std::string text, Fingerprints& fingerprints);
std::string topology_said(const std::string& text, Fingerprints& fingerprints);
std::string plan_said(const std::string& text);

}  // namespace reshard::test
