// SPDX-License-Identifier: BSD-3-Clause
// Parses and runs the steps that rows of the catalogue contain.
#include "core/ops/decompositions/written_steps.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <string>

#include "core/base/errors.h"

namespace reshard {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Removes and returns the text before `end`, or all text if there is no `end`; also removes `end`.
std::string_view take_to(std::string_view& text, std::string_view end) {
  std::size_t at = std::min(text.find(end), text.size());
  std::string_view out = text.substr(0, at);
  text.remove_prefix(std::min(at + end.size(), text.size()));
  return trimmed(out);
}

// Removes and returns a word: up to a space, or up to a parenthesis that closes none in the word.
std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  int open = 0;
  std::size_t at = 0;
  for (; at < text.size() && text[at] != ' '; ++at) {
    open += (text[at] == '(' ? 1 : 0) - (text[at] == ')' ? 1 : 0);
    if (open < 0) break;
  }
  std::string_view out = text.substr(0, at);
  text.remove_prefix(at);
  return out;
}

OpValue literal(std::string_view text) {
  if (text == "none") return {};
  if (text == "true" || text == "false") return OpValue(text == "true");
  if (text.starts_with('[')) {
    std::vector<OpValue> out;
    std::string_view items = text.substr(1, text.size() - 2);
    while (!items.empty()) out.push_back(literal(take_to(items, ",")));
    return OpValue(std::move(out));
  }
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (std::from_chars(text.data(), end, integer).ptr == end) return OpValue(integer);
  double number = 0;
  bool is_number = text.front() == '-' || (text.front() >= '0' && text.front() <= '9');
  if (is_number && std::from_chars(text.data(), end, number).ptr == end) return OpValue(number);
  return OpValue(std::string(text));
}

class Writer {
 public:
  Writer(Steps& steps, const Operator& op) : s_(steps), op_(op) {
    for (std::size_t i = 0; i < op.tensors.size(); ++i)
      named_[std::string(op.tensors[i].name)] = s_.list(static_cast<int>(i));
  }

  void write() {
    std::string_view given = op_.steps, steps = take_to(given, "->");
    while (!steps.empty()) step(take_to(steps, "|"));
    if (given = trimmed(given); given.empty()) given = "_";
    while (!given.empty())
      for (StepTensor tensor : tensors(take_to(given, " "))) s_.give(tensor);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw CheckFailure("steps of " + op_.name + ": " + std::string(what));
  }

  const std::vector<StepTensor>& tensors(std::string_view name) const {
    auto known = named_.find(std::string(name));
    if (known == named_.end()) fail(name);
    return known->second;
  }

  StepTensor tensor(std::string_view name) const {
    const std::vector<StepTensor>& all = tensors(name);
    return all.empty() ? kNoTensor : all.front();
  }

  bool holds(std::string_view condition) const {
    bool wanted = condition.starts_with('?');
    std::string_view absent = condition.substr(1), name = take_to(absent, "=");
    bool is = named_.contains(std::string(name)) ? tensor(name) != kNoTensor
                                                 : s_.attributes().boolean(name, absent == "true");
    return is == wanted;
  }

  void step(std::string_view text) {
    while (text.starts_with('?') || text.starts_with('!'))
      if (!holds(take_word(text))) return;
    text = trimmed(text);
    std::string_view names;
    if (text.find(" = ") != std::string_view::npos) names = take_to(text, " = ");
    StepTensor made = call(text);
    if (!trimmed(text).empty()) fail(text);
    named_["_"] = {made};
    std::vector<StepTensor>& all = named_["*"];
    all.resize(to_index(s_.all().empty() ? 0 : s_.all().back().outs));
    std::iota(all.begin(), all.end(), made);
    for (; !names.empty(); ++made) named_[std::string(take_to(names, ","))] = {made};
  }

  // Parses a step up to its end, or up to a closing parenthesis.
  StepTensor call(std::string_view& text) {
    std::string_view op = take_word(text);
    std::vector<std::vector<StepTensor>> in;
    OpAttributes attributes;
    for (text = trimmed(text); !text.empty() && text.front() != ')'; text = trimmed(text)) {
      if (text.front() == '(') {
        text.remove_prefix(1);
        in.push_back({call(text)});
        take_to(text, ")");
      } else {
        argument(take_word(text), in, attributes);
      }
    }
    return op == "reduced" ? reduced(in.at(0).at(0)) : s_.step(op, std::move(in), attributes);
  }

  StepTensor reduced(StepTensor tensor) {
    std::int64_t how = s_.attributes().integer("reduction", 1);
    if (how < 0 || how > 2) s_.refuse("attr reduction: expected 0 (none), 1 (mean) or 2 (sum)");
    return how == 0 ? tensor : s_.step(how == 1 ? "mean" : "sum", {{tensor}}, {});
  }

  void argument(std::string_view word, std::vector<std::vector<StepTensor>>& in,
                OpAttributes& attributes) const {
    std::size_t colon = word.find(':');
    if (word.starts_with('$')) {
      set(word.substr(1, word.find('=') - 1), word, attributes);
    } else if (colon != std::string_view::npos) {
      set(word.substr(0, colon), word.substr(colon + 1), attributes);
    } else if (word.starts_with('[')) {
      std::string_view items = word.substr(1, word.size() - 2);
      std::vector<StepTensor>& list = in.emplace_back();
      while (!items.empty()) list.push_back(tensor(take_to(items, ",")));
    } else {
      in.push_back(word == "-" ? std::vector{kNoTensor} : tensors(word));
    }
  }

  void set(std::string_view name, std::string_view value, OpAttributes& attributes) const {
    std::string key(name);
    if (value.starts_with('$')) {
      std::string_view absent = value, of = take_to(absent, "=").substr(1);
      const OpValue* own = s_.attributes().find(of);
      if (own && !own->is_null()) attributes.set(key, *own);
      if ((!own || own->is_null()) && !absent.empty()) attributes.set(key, literal(absent));
    } else {
      attributes.set(key, literal(value));
    }
  }

  Steps& s_;
  const Operator& op_;
  std::map<std::string, std::vector<StepTensor>> named_;
};

}  // namespace

void write_steps(Steps& steps, const Operator& op) { Writer(steps, op).write(); }

}  // namespace reshard
