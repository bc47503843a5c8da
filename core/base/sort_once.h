// SPDX-License-Identifier: BSD-3-Clause
// Lists as sets: ascending, each item once.
#pragma once

#include <algorithm>
#include <vector>

namespace reshard {

template <class Item>
void sort_once(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace reshard
