// SPDX-License-Identifier: BSD-3-Clause
// How a framework distributes a model over ranks, as text: "megatron tp=8 pp=8 ep=32 dp=4 etp=1",
// "vllm tp=32 ep replicas=4".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::sim {

// The words that follow a framework's name: "key=value", or a key alone. Every word that a
// framework reads is marked, so that the others can be refused.
class Parallelism {
 public:
  // `field` names the text in messages. Throws InputError if a key is repeated.
  Parallelism(std::string_view text, std::string_view field);

  const std::string& framework() const { return framework_; }
  const std::string& field() const { return field_; }
  // The text as given, with single blanks.
  std::string text() const;

  bool has(std::string_view key) const;
  // `number` throws InputError if the value is not a number in [1, most]; `flag` if it has a value.
  std::int64_t number(std::string_view key, std::int64_t absent, std::int64_t most = 1 << 20);
  bool flag(std::string_view key);
  std::string word(std::string_view key, std::string_view absent);
  // One of `words`; the first one if the key is absent.
  std::string choice(std::string_view key, const std::vector<std::string_view>& words);
  // Replaces the value of a key, or adds the key.
  void set(std::string_view key, std::string_view value);

  // Throws InputError for the first word that was not read. `known` lists the words that can be.
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
