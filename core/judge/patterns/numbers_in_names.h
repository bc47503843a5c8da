// SPDX-License-Identifier: BSD-3-Clause
// Tensors that are taken for those of another number, if their names have numbers: layers and
// experts.
//
// Such a mistake affects everything that is numbered in that way. So it is named only if it
// explains all tensors of which the numbers are exchanged, and there are several tensors of a
// number.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/judge/fault_groups.h"
#include "core/judge/patterns/dealt.h"
#include "core/judge/patterns/numbered_name.h"

namespace reshard {

class NumbersInNames {
 public:
  // Looks at the first `most` findings only.
  NumbersInNames(const std::vector<Finding>& findings, std::size_t most, const Stored& source,
                 const Stored& destination);

  // The mistake that explains a finding; empty if none does.
  const std::string& mistake_of(std::size_t finding) const { return mistakes_[finding]; }

 private:
  struct Exchanged {
    std::size_t finding;
    NumberedName wanted;
    std::int64_t got;
  };
  // All names with the same text up to a number. `exchanged` are the tensors that get another
  // number's elements.
  struct Family {
    std::string label;
    std::size_t number;  // which number of the name
    std::vector<Exchanged> exchanged;
    std::set<std::string> patterns;  // of the exchanged names
    Arrivals arrivals;
    std::int64_t count = 0;             // how many numbers the model has
    std::vector<std::size_t> not_held;  // findings of elements that are not held
    std::set<std::int64_t> numbers_not_held;
  };

  void collect(std::size_t most);
  bool of_several_copies(const Family& family) const;
  void count_numbers();
  std::string explain(const Family& family);
  std::string shifted(const Family& family) const;
  std::string dealt(const Family& family);
  std::string counted_from_zero(const Family& family);
  std::string divided(const Family& family, bool at_source) const;
  std::string mapped(const Family& family) const;

  std::set<std::int64_t> held(const Stored& side, Rank rank, const NumberedName& name,
                              const Family& family);
  std::int64_t divisions(const Stored& side, const Family& family);

  struct Misplaced {
    NumberedName example;
    Rank rank;
    std::set<std::string> buffers;  // their names, with # for numbers
    std::set<std::size_t> findings;
    std::set<ModelTensorId> tensors;
    bool of_itself = false;  // some of its tensors have no second number
  };
  std::map<std::string, Misplaced> misplaced(std::size_t most, bool at_source) const;
  void find_misplaced(std::size_t most, bool at_source);

  const std::vector<Finding>& findings_;
  const Stored &source_, &destination_;
  std::map<std::string, Family, std::less<>> families_;  // by the text up to the number
  std::int64_t lookups_ = 0;
  std::vector<std::string> mistakes_;
};

}  // namespace reshard
