// SPDX-License-Identifier: BSD-3-Clause
// What the judge says of copies, compared with copying the numbers of all elements.
#include <catch2/catch.hpp>

#include <array>
#include <map>
#include <set>

#include "core/base/errors.h"
#include "core/judge/fault_groups.h"
#include "core/judge/judge.h"
#include "tests/support/drawn_models.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// (buffer of the destination, element of it)
using Places = std::set<std::pair<std::size_t, std::int64_t>>;

struct Verdict {
  Places wrong, twice, missing;
  std::int64_t outside = 0;  // ends that name what is not there
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// The elements that an end names, in its order, each in all buffers of the rank that have it.
using Elements = std::vector<Places>;

std::int64_t number_in(const ModelTensors& tensors, ModelTensorId id, const DimVector& at) {
  std::int64_t first = 0, index = 0;
  ModelTensorId root = tensors[id].same_as;
  for (std::size_t t = 0; t < to_index(root); ++t)
    first += element_count(tensors[id_of<ModelTensorId>(t)].shape);
  for (int d = 0; d < at.size(); ++d) index = index * tensors[id].shape[d] + at[d];
  return first + index;
}

Elements elements_of(const Stored& side, const ElementNumbers& numbers, const CopyEnd& end) {
  Elements out;
  for (std::int64_t i = 0; i < end.count(); ++i) {
    Places& places = out.emplace_back();
    if (!end.is_box) {
      DimVector at = index_at(i, end.view.extents);
      std::int64_t place = end.view.offset;
      for (int d = 0; d < at.size(); ++d) place += at[d] * end.view.strides[d];
      if (place < element_count(side.buffers()[end.buffer].shape))
        places.emplace(to_index(end.buffer), place);
      continue;
    }
    DimVector at = index_at(i, end.box.extents());
    for (int d = 0; d < at.size(); ++d) at[d] += end.box.lo[d];
    std::int64_t wanted = number_in(side.tensors(), end.tensor, at);
    for (std::size_t b = 0; b < numbers.size(); ++b)
      for (std::size_t p = 0; side.buffers()[b].rank == end.rank && p < numbers[b].size(); ++p)
        if (numbers[b][p] == wanted) places.emplace(b, static_cast<std::int64_t>(p));
  }
  return out;
}

Verdict by_elements(const DrawnModel& model, const std::vector<DrawnCopy>& copies) {
  ElementNumbers source = element_numbers(*model.source),
                 destination = element_numbers(*model.destination);
  std::map<std::pair<std::size_t, std::int64_t>, int> written;
  Verdict out;
  for (const DrawnCopy& copy : copies) {
    Elements from = elements_of(*model.source, source, copy.from),
             to = elements_of(*model.destination, destination, copy.to);
    auto leaves = [](const CopyEnd& end, const Elements& elements) {
      return !end.is_box && std::any_of(elements.begin(), elements.end(),
                                        [](const Places& places) { return places.empty(); });
    };
    out.outside += (leaves(copy.from, from) ? 1 : 0) + (leaves(copy.to, to) ? 1 : 0);
    if (leaves(copy.from, from) || leaves(copy.to, to)) continue;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i].empty()) ++out.outside;
      for (const auto& place : to[i]) {
        std::int64_t wanted = destination[place.first][to_index(place.second)];
        if (wanted < 0) continue;
        if (++written[place] > 1) out.twice.insert(place);
        std::int64_t got = from[i].empty()
                               ? -1
                               : source[from[i].begin()->first][to_index(from[i].begin()->second)];
        if (got != wanted) out.wrong.insert(place);
      }
    }
  }
  for (std::size_t b = 0; b < destination.size(); ++b)
    for (std::size_t p = 0; p < destination[b].size(); ++p)
      if (std::pair place(b, static_cast<std::int64_t>(p));
          destination[b][p] >= 0 && !written.contains(place))
        out.missing.insert(place);
  return out;
}

int mixed_up = 0;  // faults with elements that are right by chance

std::vector<CopyFault> judged(const DrawnModel& model, const std::vector<DrawnCopy>& copies) {
  Judge judge(*model.source, *model.destination);
  std::int64_t line = 0;
  for (const DrawnCopy& copy : copies) judge.copy(copy.from, copy.to, ++line);
  CHECK(judge.copies() == line);
  return judge.finish();
}

// The places of the faults. Boxes of elements that are mixed up can have some that are right by
// chance, but not all.
Verdict as_judged(const DrawnModel& model, const std::vector<DrawnCopy>& copies,
                  const Places& wrong) {
  Verdict out;
  for (const CopyFault& fault : judged(model, copies)) {
    bool is_end = fault.kind == CopyFaultKind::OutOfBuffer ||
                  (fault.kind == CopyFaultKind::NotHeld && fault.from == Rank{-1});
    if (fault.kind == CopyFaultKind::OutOfBuffer) ++out.outside;
    if (fault.kind == CopyFaultKind::NotHeld && is_end) out.outside += fault.elements;
    if (is_end) continue;
    REQUIRE(fault.elements == fault.box.volume());
    Places own;
    const StoredPart& part = (*model.destination)[{fault.buffer, fault.part}];
    REQUIRE((part.tensor == fault.tensor && contains(part.box, fault.box)));
    for (std::int64_t i = 0; i < fault.elements; ++i) {
      DimVector at = index_at(i, fault.box.extents());
      std::int64_t place = part.offset;
      for (int d = 0; d < at.size(); ++d)
        place += (fault.box.lo[d] + at[d] - part.box.lo[d]) * part.strides[d];
      own.emplace(to_index(fault.buffer), place);
    }
    bool is_wrong =
        fault.kind != CopyFaultKind::WrittenTwice && fault.kind != CopyFaultKind::Missing;
    if (is_wrong) {
      std::size_t before = own.size();
      std::erase_if(own, [&](const auto& place) { return !wrong.contains(place); });
      REQUIRE(!own.empty());
      mixed_up += own.size() < before ? 1 : 0;
    }
    (is_wrong                                    ? out.wrong
     : fault.kind == CopyFaultKind::WrittenTwice ? out.twice
                                                 : out.missing)
        .merge(own);
  }
  return out;
}

}  // namespace

TEST_CASE("Right copies of drawn models have no faults") {
  Prng prng(1);
  std::size_t copied = 0;
  for (int i = 0; i < 20'000 / kOneOf; ++i) {
    DrawnModel model = draw_model(prng);
    std::vector<DrawnCopy> copies = right_copies(model, prng);
    REQUIRE(by_elements(model, copies) == Verdict{});
    REQUIRE(judged(model, copies).empty());
    copied += copies.size();
  }
  CHECK(copied > 100'000u / kOneOf);
}

TEST_CASE("Broken copies of drawn models have exactly the faults that their elements show") {
  Prng prng(2);
  int wrong = 0;
  for (int i = 0; i < 40'000 / kOneOf; ++i) {
    DrawnModel model = draw_model(prng);
    std::vector<DrawnCopy> copies = right_copies(model, prng);
    for (std::int64_t breaks = prng.between(1, 3); breaks > 0; --breaks)
      break_copies(model, copies, prng);
    Verdict expected = by_elements(model, copies), found = as_judged(model, copies, expected.wrong);
    INFO("case " << i);
    REQUIRE(found.wrong == expected.wrong);
    REQUIRE(found.twice == expected.twice);
    REQUIRE(found.missing == expected.missing);
    REQUIRE(found.outside == expected.outside);
    wrong += expected == Verdict{} ? 0 : 1;
    // Every fault is in one finding, and texts can be made of all.
    std::vector<CopyFault> faults = judged(model, copies);
    std::size_t count = faults.size(), grouped = 0;
    for (const Finding& finding : findings_of(faults, *model.source, *model.destination))
      grouped += finding.faults.size();
    REQUIRE(grouped == count);
  }
  CHECK(wrong > 25'000 / kOneOf);
  CHECK(mixed_up < 100);
}
