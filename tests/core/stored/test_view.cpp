// SPDX-License-Identifier: BSD-3-Clause
// Where views of a buffer meet, compared with all their elements.
#include <catch2/catch.hpp>

#include <map>

#include "core/base/ids.h"
#include "core/stored/view.h"
#include "tests/support/prng.h"

using namespace reshard;

namespace {

constexpr std::int64_t kPlenty = 1 << 20;

// By element of the buffer, the position of the view that names it.
std::map<std::int64_t, std::int64_t> positions_of(const StridedView& view) {
  std::map<std::int64_t, std::int64_t> out;
  for (std::int64_t position = 0; position < view.count(); ++position) {
    DimVector at = index_at(position, view.extents);
    std::int64_t element = view.offset;
    for (int d = 0; d < view.dims(); ++d) element += at[d] * view.strides[d];
    out[element] = position;
  }
  return out;
}

// By row-major index of the part, the position of the view, as the meetings say.
std::map<std::int64_t, std::int64_t> as_found(const StridedView& view, const StridedView& part,
                                              std::size_t* count = nullptr) {
  std::vector<Meeting> meetings;
  std::int64_t budget = kPlenty;
  REQUIRE(find_meetings(view, part, budget, meetings));
  if (count != nullptr) *count = meetings.size();
  std::map<std::int64_t, std::int64_t> out;
  for (const Meeting& meeting : meetings) {
    REQUIRE(!meeting.box.empty());
    REQUIRE(contains(box_of(part.extents), meeting.box));
    for (std::int64_t i = 0; i < meeting.box.volume(); ++i) {
      DimVector at = index_at(i, meeting.box.extents());
      std::int64_t position = meeting.position, index = 0;
      for (int d = 0; d < at.size(); ++d) {
        if (meeting.box.extent(d) == 1) REQUIRE(meeting.weights[d] == 0);
        position += meeting.weights[d] * at[d];
        index = index * part.extents[d] + meeting.box.lo[d] + at[d];
      }
      REQUIRE(out.emplace(index, position).second);  // disjoint
    }
  }
  return out;
}

std::map<std::int64_t, std::int64_t> as_defined(const StridedView& view, const StridedView& part) {
  std::map<std::int64_t, std::int64_t> of_view = positions_of(view), of_part = positions_of(part),
                                       out;
  for (const auto& [element, index] : of_part)
    if (auto at = of_view.find(element); at != of_view.end()) out[index] = at->second;
  return out;
}

// A box of a row-major array somewhere in the buffer, with its dims in any order, and steps of one
// or two.
StridedView drawn_view(test::Prng& random) {
  int dims = static_cast<int>(random.between(1, 3));
  StridedView out{random.between(0, 12), DimVector(dims), DimVector(dims)};
  std::vector<int> order;
  for (int d = 0; d < dims; ++d) order.insert(order.begin() + random.between(0, d), d);
  std::int64_t stride = random.between(1, 4) == 1 ? 2 : 1;
  for (int d : order) {
    out.extents[d] = random.between(1, 5);
    out.strides[d] = stride;
    stride *= random.between(1, 3) == 1 ? out.extents[d] : out.extents[d] + random.between(0, 3);
  }
  return out;
}

}  // namespace

TEST_CASE("Views meet where they name the same elements") {
  test::Prng random(1);
  std::int64_t met = 0;
  for (int i = 0; i < 40'000; ++i) {
    StridedView view = drawn_view(random), part = drawn_view(random);
    REQUIRE(is_nested(part));
    auto found = as_found(view, part);
    REQUIRE(found == as_defined(view, part));
    met += found.empty() ? 0 : 1;
  }
  CHECK(met > 20'000);
}

TEST_CASE("Boxes of one buffer meet, and an interval is at most 2d-1 boxes") {
  test::Prng random(2);
  for (int i = 0; i < 20'000; ++i) {
    int dims = static_cast<int>(random.between(1, 3));
    Shape buffer(dims);
    for (int d = 0; d < dims; ++d) buffer[d] = random.between(1, 6);
    auto drawn_box = [&] {
      Box out = box_of(buffer);
      for (int d = 0; d < dims; ++d) {
        out.lo[d] = random.between(0, buffer[d] - 1);
        out.hi[d] = random.between(out.lo[d] + 1, buffer[d]);
      }
      return out;
    };
    StridedView view = view_of(drawn_box(), buffer), part = view_of(drawn_box(), buffer);
    REQUIRE(as_found(view, part) == as_defined(view, part));
    std::int64_t lo = random.between(0, element_count(buffer) - 1);
    StridedView interval{lo, {random.between(1, element_count(buffer) - lo)}, {1}};
    std::size_t count = 0;
    REQUIRE(as_found(interval, part, &count) == as_defined(interval, part));
    CHECK(count <= to_index(2 * dims - 1));
  }
}

TEST_CASE("A view that has to be looked at run by run stops at its budget") {
  StridedView view{0, {100, 3}, {7, 2}}, part{0, {140, 5}, {5, 1}};
  std::vector<Meeting> out;
  std::int64_t budget = 50;
  CHECK_FALSE(find_meetings(view, part, budget, out));
  budget = 1000;
  CHECK(find_meetings(view, part, budget, out));
}

TEST_CASE("Overlapping steps are not nested") {
  CHECK(is_nested({0, {4, 3}, {3, 1}}));
  CHECK(is_nested({0, {3, 4}, {1, 3}}));
  CHECK(is_nested({5, {1, 3}, {0, 1}}));
  CHECK_FALSE(is_nested({0, {4, 3}, {2, 1}}));
  CHECK_FALSE(is_nested({0, {2}, {0}}));
  CHECK_FALSE(is_nested({0, {2, 2}, {1, 1}}));
}
