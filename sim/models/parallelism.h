// SPDX-License-Identifier: BSD-3-Clause
// How a framework spreads a model over ranks, as text: "megatron tp=8 pp=8 ep=32 dp=4 etp=1",
// "vllm tp=32 ep replicas=4".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::sim {

// The words after a framework's name: "key=value", or a key alone. Each word is marked as it is
// read, so that what a framework does not know can be refused.
class Parallelism {
 public:
  // `field` names the text in messages. Throws InputError for a key that comes twice.
  Parallelism(std::string_view text, std::string_view field);

  const std::string& framework() const { return framework_; }
  const std::string& field() const { return field_; }
  // As it was given, with single blanks.
  std::string text() const;

  bool has(std::string_view key) const;
  // Throw InputError for a value that is no number in [1, most], and for a flag with a value.
  std::int64_t number(std::string_view key, std::int64_t absent, std::int64_t most = 1 << 20);
  bool flag(std::string_view key);
  std::string word(std::string_view key, std::string_view absent);
  // One of `words`, the first if it is absent.
  std::string choice(std::string_view key, const std::vector<std::string_view>& words);
  // Exchanges the value of a key, or adds it.
  void set(std::string_view key, std::string_view value);

  // Throws InputError for the first word that was not read; `known` are those that could be.
  void refuse_others(std::string_view known) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

 private:
  struct Word {
    std::string key, value;
    bool has_value, read;
  };
  Word* find(std::string_view key);

  std::string field_, framework_;
  std::vector<Word> words_;
};

}  // namespace reshard::sim
