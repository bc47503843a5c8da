// SPDX-License-Identifier: BSD-3-Clause
// Grouped lists, and iteration over n-d indices.
#include <catch2/catch.hpp>

#include <string>

#include "core/base/grouped.h"
#include "core/layout/box.h"

using namespace reshard;

TEST_CASE("Items come in groups, in the order in which they were put") {
  std::vector<std::pair<std::size_t, std::string>> given{
      {3, "a"}, {0, "b"}, {3, "c"}, {1, "d"}, {3, "a"}};
  Grouped<std::string> grouped(5, [&](auto put) {
    for (const auto& [key, item] : given) put(key, item);
  });
  auto group = [&](std::size_t key) {
    return std::vector<std::string>(grouped[key].begin(), grouped[key].end());
  };
  CHECK(group(0) == std::vector<std::string>{"b"});
  CHECK(group(1) == std::vector<std::string>{"d"});
  CHECK(group(2).empty());
  CHECK(group(3) == std::vector<std::string>{"a", "c", "a"});
  CHECK(group(4).empty());
  CHECK(grouped.all() == std::vector<std::string>{"b", "d", "a", "c", "a"});
  CHECK(Grouped<int>(0, [](auto) {}).all().empty());
}

TEST_CASE("next_index goes through all indices in row-major order") {
  for (const Shape& shape : {Shape{2, 3, 2}, Shape{1, 4}, Shape{5}, Shape{}}) {
    DimVector at(shape.size());
    std::int64_t count = 0;
    do {
      CHECK(at == index_at(count, shape));
      ++count;
    } while (next_index(at, [&](int d) { return shape[d]; }));
    CHECK(count == element_count(shape));
    CHECK(at == DimVector(shape.size()));
  }
}
