// SPDX-License-Identifier: BSD-3-Clause
// Compares the program's results for many random inputs with earlier ones in a file, which is
// rewritten with RESHARD_UPDATE_FIGURES=1; read the difference before you accept it.
#pragma once

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "tests/support/part.h"

namespace reshard::test {

inline bool rewrites() { return std::getenv("RESHARD_UPDATE_FIGURES") != nullptr; }

// Line i of the file must be line_of(i), and there must be `count` lines. If only a part is tested
// (part.h), every kOneOf-th line is compared.
template <class Number, class LineOf>
void check_lines(const std::string& path, Number count, const LineOf& line_of) {
  if (rewrites()) {
    std::ofstream file(path);
    for (Number i = 0; i < count; ++i) file << line_of(i) << '\n';
  }
  std::ifstream file(path);
  Number i = 0;
  for (std::string line; std::getline(file, line); ++i)
    if (i < count && i % kOneOf == 0) CHECK(line_of(i) == line);
  CHECK(i == count);
}

// A file with some lines in full and, on its last line, the digests of all others, `together` lines
// per digest. The first difference fails the test. If only a part is tested, the beginning is
// compared.
class Pinned {
 public:
  Pinned(std::string path, std::int64_t together) : path_(std::move(path)), together_(together) {
    if (rewrites()) return;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) lines_were_.push_back(line);
    REQUIRE(!lines_were_.empty());
    digests_were_ = lines_were_.back();
  }

  void add_line(const std::string& line) {
    lines_.push_back(line);
    if (lines_were_.empty()) return;
    REQUIRE(lines_.size() < lines_were_.size());
    REQUIRE(line == lines_were_[lines_.size() - 1]);
  }

  void add(std::string_view text) {
    hasher_->add(text);
    hasher_->add("\n");
    if (++number_ % together_ != 0) return;
    std::string digest = hasher_->digest().hex().substr(0, kDigits);
    if (!lines_were_.empty()) {
      INFO("one of the " << together_ << " that end with number " << number_);
      REQUIRE(digests_.size() < digests_were_.size());
      REQUIRE(digest == digests_were_.substr(digests_.size(), kDigits));
    }
    digests_ += digest;
    hasher_ = std::make_unique<Hasher>();
  }
  std::int64_t number() const { return number_; }
  std::size_t lines() const { return lines_.size(); }

  void finish() const {
    if (lines_were_.empty()) {
      std::ofstream file(path_);
      for (const std::string& line : lines_) file << line << '\n';
      file << digests_ << '\n';
    } else if (kOneOf == 1) {
      CHECK(lines_.size() + 1 == lines_were_.size());
      CHECK(digests_.size() == digests_were_.size());
    }
  }

 private:
  static constexpr std::size_t kDigits = 4;

  std::string path_;
  std::int64_t together_, number_ = 0;
  std::vector<std::string> lines_, lines_were_;
  std::string digests_, digests_were_;
  std::unique_ptr<Hasher> hasher_ = std::make_unique<Hasher>();
};

}  // namespace reshard::test
