// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/patterns/numbers_in_names.h"

#include <algorithm>

#include <fmt/core.h>

namespace reshard {
namespace {

constexpr std::int64_t kMostLookups = std::int64_t{1} << 18;

// Whether each element arrives at its own index, in the other tensor.
bool is_in_place(const Finding& finding) {
  return std::all_of(finding.faults.begin(), finding.faults.end(), [](const CopyFault& fault) {
    return !fault.reordered && fault.got_lo == fault.box.lo;
  });
}

}  // namespace

NumbersInNames::NumbersInNames(const std::vector<Finding>& findings, std::size_t most,
                               const Stored& source, const Stored& destination)
    : findings_(findings), source_(source), destination_(destination), mistakes_(findings.size()) {
  most = std::min(most, findings.size());
  collect(most);
  for (auto& [prefix, family] : families_) {
    // Single tensors or single copies also go wrong for other reasons.
    if (family.patterns.size() < 2 || !of_several_copies(family)) continue;
    std::string mistake = explain(family);
    for (const Exchanged& each : family.exchanged) mistakes_[each.finding] = mistake;
    for (std::size_t finding : family.not_held) mistakes_[finding] = mistake;
  }
  for (bool at_source : {false, true}) find_misplaced(most, at_source);
}

// Whether the tensors are in many buffers, or in buffers of several names: one copy into a fused
// buffer already writes several tensors.
bool NumbersInNames::of_several_copies(const Family& family) const {
  constexpr std::size_t kMany = 4;
  std::set<std::string> buffers;
  std::set<std::int64_t> lines;
  for (const Exchanged& each : family.exchanged) {
    const Finding& finding = findings_[each.finding];
    lines.insert(finding.lines.begin(), finding.lines.end());
    for (const CopyFault& fault : finding.faults)
      buffers.insert(numbered(destination_.buffers()[fault.buffer].name).pattern);
  }
  return buffers.size() > 1 || lines.size() >= kMany;
}

void NumbersInNames::collect(std::size_t most) {
  const ModelTensors& tensors = source_.tensors();
  for (std::size_t i = 0; i < most; ++i) {
    const Finding& finding = findings_[i];
    if (finding.kind != CopyFaultKind::WrongTensor || !is_in_place(finding)) continue;
    NumberedName wanted = numbered(tensors[finding.tensor].name),
                 got = numbered(tensors[finding.got].name);
    int number = wanted.only_difference(got);
    if (number < 0) continue;
    auto at = to_index(number);
    Family& family = families_[std::string(wanted.prefix(at))];
    family.label = wanted.label(at);
    family.number = at;
    family.patterns.insert(wanted.pattern);
    family.arrivals[wanted.numbers[at].value].insert(got.numbers[at].value);
    family.exchanged.push_back({i, std::move(wanted), got.numbers[at].value});
  }
  if (families_.empty()) return;
  count_numbers();
  for (std::size_t i = 0; i < most; ++i) {
    const Finding& finding = findings_[i];
    if (finding.kind != CopyFaultKind::NotHeld || finding.tensor == ModelTensorId{-1}) continue;
    NumberedName name = numbered(tensors[finding.tensor].name);
    for (std::size_t k = 0; k < name.numbers.size(); ++k)
      if (auto family = families_.find(name.prefix(k)); family != families_.end()) {
        family->second.not_held.push_back(i);
        family->second.numbers_not_held.insert(name.numbers[k].value);
      }
  }
}

void NumbersInNames::count_numbers() {
  const ModelTensors& tensors = source_.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    NumberedName name = numbered(tensors[id_of<ModelTensorId>(i)].name);
    for (std::size_t k = 0; k < name.numbers.size(); ++k)
      if (auto family = families_.find(name.prefix(k)); family != families_.end())
        family->second.count = std::max(family->second.count, name.numbers[k].value + 1);
  }
}

std::string NumbersInNames::explain(const Family& family) {
  for (std::string mistake : {shifted(family), dealt(family), counted_from_zero(family)})
    if (!mistake.empty()) return mistake;
  // If each stage counts its layers from 0, local numbers differ from global ones by another shift
  // on each stage.
  for (bool at_source : {true, false})
    if (std::string mistake = divided(family, at_source); !mistake.empty()) return mistake;
  return mapped(family);
}

// All numbers are shifted by the same amount, either all around the end or none.
std::string NumbersInNames::shifted(const Family& family) const {
  const std::int64_t count = family.count;
  const Exchanged& first = family.exchanged.front();
  const std::int64_t by = first.got - first.wanted.numbers[family.number].value;
  bool around = std::ssize(family.arrivals) == count, straight = family.arrivals.size() > 1;
  for (const auto& [wanted, got] : family.arrivals) {
    if (got.size() != 1) return {};
    std::int64_t shift = *got.begin() - wanted;
    around = around && (shift - by) % count == 0;
    straight = straight && shift == by;
  }
  // Tensors that would come from beyond the last number or before the first are not found.
  bool beyond = false;
  for (std::int64_t number = 0; number < count && straight; ++number) {
    bool inside = number + by >= 0 && number + by < count;
    straight = !inside || family.arrivals.contains(number);
    beyond = beyond || (!inside && family.numbers_not_held.contains(number));
  }
  if (!around && !(straight && beyond)) return {};
  return fmt::format("the numbers of {0} are shifted by {1}: {0}.{2} gets {0}.{3}", family.label,
                     2 * std::abs(by) > count ? (by < 0 ? by + count : by - count) : by,
                     first.wanted.numbers[family.number].value, first.got);
}

std::string NumbersInNames::dealt(const Family& family) {
  for (const Stored* side : {&destination_, &source_}) {
    auto how = dealt_otherwise(family.arrivals, family.count, divisions(*side, family));
    if (how) return fmt::format("{} are {}", family.label, *how);
  }
  return {};
}

// The numbers of the tensors on a rank that are named like `name` but for this number.
std::set<std::int64_t> NumbersInNames::held(const Stored& side, Rank rank, const NumberedName& name,
                                            const Family& family) {
  std::set<std::int64_t> out;
  for (std::int64_t i = 0; i < family.count && lookups_ < kMostLookups; ++i, ++lookups_)
    if (const ModelTensor* tensor = side.tensors().find(name.with(family.number, i)))
      if (!side.parts_of(rank, tensor->same_as).empty()) out.insert(i);
  return out;
}

// The number of different lots into which the ranks of a side divide the numbers.
std::int64_t NumbersInNames::divisions(const Stored& side, const Family& family) {
  std::set<std::set<std::int64_t>> lots;
  for (Rank rank : side.ranks())
    if (auto lot = held(side, rank, family.exchanged.front().wanted, family); !lot.empty())
      lots.insert(std::move(lot));
  return std::ssize(lots);
}

// Every rank gets the first numbers, as if its own numbers began with 0.
std::string NumbersInNames::counted_from_zero(const Family& family) {
  std::map<std::pair<Rank, std::string>, std::int64_t> firsts;
  std::string example;
  for (const Exchanged& each : family.exchanged) {
    const std::int64_t wanted = each.wanted.numbers[family.number].value;
    for (Rank rank : findings_[each.finding].to) {
      auto [first, is_new] = firsts.try_emplace({rank, each.wanted.with(family.number, 0)});
      if (is_new) {
        std::set<std::int64_t> numbers = held(destination_, rank, each.wanted, family);
        if (numbers.empty() || lookups_ >= kMostLookups) return {};
        first->second = *numbers.begin();
      }
      if (each.got != wanted - first->second) return {};
      if (example.empty())
        example = fmt::format("rank {0} gets {1}.{2} for {1}.{3}", to_int(rank), family.label,
                              each.got, wanted);
    }
  }
  return fmt::format("local numbers of {} are taken for global ones: {}", family.label, example);
}

// On each rank the numbers are a range and shifted by the same amount, but ranks differ in the
// amount.
std::string NumbersInNames::divided(const Family& family, bool at_source) const {
  if (family.number != 0) return {};
  std::map<Rank, std::int64_t> shifts;
  std::map<Rank, std::set<std::int64_t>> numbers;
  for (const Exchanged& each : family.exchanged)
    for (const CopyFault& fault : findings_[each.finding].faults) {
      const Rank rank = at_source ? fault.from : fault.to;
      const std::int64_t wanted = each.wanted.numbers[0].value, shift = each.got - wanted;
      if (shifts.emplace(rank, shift).first->second != shift) return {};
      numbers[rank].insert(wanted);
    }
  for (const auto& [rank, range] : numbers)
    if (*range.rbegin() - *range.begin() + 1 != std::ssize(range)) return {};
  const Exchanged& first = family.exchanged.front();
  const Finding& finding = findings_[first.finding];
  return fmt::format(
      "{0} are divided otherwise among the ranks of the {1}: on rank {2}, {0}.{3} "
      "is taken for {0}.{4}",
      family.label, at_source ? "source" : "destination",
      to_int(at_source ? finding.from.front() : finding.to.front()), first.got,
      first.wanted.numbers[0].value);
}

// Numbers are exchanged in some other way, which is the same for all tensors of a number.
std::string NumbersInNames::mapped(const Family& family) const {
  using Numbers = std::vector<std::int64_t>;
  std::map<std::pair<Rank, Numbers>, std::map<std::string, std::set<std::int64_t>>> got;
  for (const Exchanged& each : family.exchanged) {
    Numbers numbers;
    for (const NumberedName::Number& number : each.wanted.numbers) numbers.push_back(number.value);
    for (Rank rank : findings_[each.finding].to)
      got[{rank, numbers}][each.wanted.pattern].insert(each.got);
  }
  std::size_t most = 0;
  for (const auto& [wanted, by_pattern] : got) {
    most = std::max(most, by_pattern.size());
    for (const auto& [pattern, numbers] : by_pattern)
      if (numbers != by_pattern.begin()->second) return {};
  }
  if (most < 2) return {};
  const Exchanged& first = family.exchanged.front();
  return fmt::format("{0} are numbered by another map: rank {1} gets {0}.{2} for {0}.{3}",
                     family.label, to_int(findings_[first.finding].to.front()), first.got,
                     first.wanted.numbers[family.number].value);
}

// By the text up to the first number: tensors that are read from ranks, or written to ranks, that
// do not hold them.
std::map<std::string, NumbersInNames::Misplaced> NumbersInNames::misplaced(std::size_t most,
                                                                           bool at_source) const {
  std::map<std::string, Misplaced> out;
  const ModelTensors& tensors = source_.tensors();
  auto add = [&](std::size_t finding, ModelTensorId tensor, Rank rank, std::string_view buffer) {
    NumberedName name = numbered(tensors[tensor].name);
    if (name.numbers.empty()) return;
    std::string prefix(name.prefix(0));
    Misplaced& of = out.try_emplace(prefix, Misplaced{name, rank, {}, {}, {}}).first->second;
    of.buffers.insert(numbered(buffer).pattern);
    of.findings.insert(finding);
    of.tensors.insert(tensor);
    of.of_itself = of.of_itself || name.numbers.size() == 1;
  };
  for (std::size_t i = 0; i < most; ++i) {
    if (findings_[i].kind != CopyFaultKind::NotHeld) continue;
    std::set<std::string_view> seen;  // names of buffers
    for (const CopyFault& fault : findings_[i].faults) {
      bool reads = fault.tensor != ModelTensorId{-1};
      if (reads != at_source || !seen.insert(fault.why).second) continue;
      if (reads && fault.from != Rank{-1}) add(i, fault.tensor, fault.from, fault.why);
      auto buffer = reads ? std::nullopt : destination_.find_any(fault.why);
      if (!buffer) continue;
      for (const StoredPart& part : destination_.buffers()[*buffer].parts)
        add(i, part.tensor, fault.to, fault.why);
    }
  }
  return out;
}

void NumbersInNames::find_misplaced(std::size_t most, bool at_source) {
  std::set<ModelTensorId> missing;
  for (std::size_t i = 0; i < most; ++i)
    if (findings_[i].kind == CopyFaultKind::Missing) missing.insert(findings_[i].tensor);
  for (const auto& [prefix, of] : misplaced(most, at_source)) {
    if (of.buffers.size() < 2 || !of.of_itself) continue;
    // A tensor that is written to the wrong rank must be missing on the right one.
    if (!at_source &&
        !std::includes(missing.begin(), missing.end(), of.tensors.begin(), of.tensors.end()))
      continue;
    std::string mistake = fmt::format(
        "{0} are divided otherwise among the ranks of the {1}: {0}.{2} is {3} rank {4}, which has "
        "none of it",
        of.example.label(0), at_source ? "source" : "destination", of.example.numbers[0].value,
        at_source ? "read from" : "written to", to_int(of.rank));
    for (std::size_t i = 0; i < most; ++i) {
      bool is_missing = !at_source && findings_[i].kind == CopyFaultKind::Missing &&
                        of.tensors.contains(findings_[i].tensor);
      if ((of.findings.contains(i) || is_missing) && mistakes_[i].empty()) mistakes_[i] = mistake;
    }
  }
}

}  // namespace reshard
