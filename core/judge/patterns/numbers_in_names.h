// SPDX-License-Identifier: BSD-3-Clause
// Tensors that are taken for those of another number, where the number is in the name: layers and
// experts.
//
// A mistake in numbers is made for everything that is so numbered. So it is named only if it
// explains all tensors whose numbers are exchanged, and these are several of a number.
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
  // Looks at so many findings.
  NumbersInNames(const std::vector<Finding>& findings, std::size_t most, const Stored& source,
                 const Stored& destination);

  // What explains a finding; empty if nothing does.
  const std::string& mistake_of(std::size_t finding) const { return mistakes_[finding]; }

 private:
  struct Exchanged {
    std::size_t finding;
    NumberedName wanted;
    std::int64_t got;
  };
  // All names with the same text up to a number.
  struct Family {
    std::string label;
    std::size_t number;  // which of the name's
    std::vector<Exchanged> exchanged;
    std::set<std::string> patterns;  // of those
    Arrivals arrivals;
    std::int64_t count = 0;             // of the numbers, in the model
    std::vector<std::size_t> not_held;  // findings
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
    std::set<std::string> buffers;  // their names without numbers
    std::set<std::size_t> findings;
    std::set<ModelTensorId> tensors;
    bool of_itself = false;  // some of its tensors have no other number
  };
  std::map<std::string, Misplaced> misplaced(std::size_t most, bool at_source) const;
  void find_misplaced(std::size_t most, bool at_source);

  const std::vector<Finding>& findings_;
  const Stored &source_, &destination_;
  std::map<std::string, Family, std::less<>> families_;  // by their text
  std::int64_t lookups_ = 0;
  std::vector<std::string> mistakes_;
};

}  // namespace reshard
