// SPDX-License-Identifier: BSD-3-Clause
// Everything observable about a text that a reader of core accepts, after it was written and read
// back to the same value. The exception for a refused text passes through.
#pragma once

#include <catch2/catch.hpp>

#include <map>
#include <string>

#include "core/base/digest.h"

namespace reshard::test {

// Two values have the same fingerprint if and only if they have the same content.
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

// Removes the first line and returns it without its end.
inline std::string take_line(std::string& text) {
  std::string out = text.substr(0, text.find('\n'));
  text.erase(0, out.size() + 1);
  return out;
}

std::string observed_shape(const std::string& text);
std::string observed_dtype(const std::string& text);
std::string observed_operator(const std::string& text);
std::string observed_bytes(const std::string& text);
std::string observed_rate(const std::string& text);
std::string observed_duration(const std::string& text);
std::string observed_ratio(const std::string& text);
// The mesh, and its ranks if there is a second line.
std::string observed_mesh(std::string text);
// A line of the number of axes, one of that of dims, then placements.
std::string observed_placements(std::string text);
// All fields of RequestTexts, a line each.
std::string observed_request(std::string text, Fingerprints& fingerprints);
std::string observed_topology(const std::string& text, Fingerprints& fingerprints);
std::string observed_plan(const std::string& text);

}  // namespace reshard::test
