// SPDX-License-Identifier: BSD-3-Clause
// Index maps by their definition, and fused buffers compared with filling them element by element.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/errors.h"
#include "core/stored/generators.h"
#include "tests/support/drawn_models.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::test;
using Catch::Contains;

namespace {

using Numbers = std::vector<std::int64_t>;
using Rule = IndexMap::Rule;

Numbers indices_of(const IndexMap& map, std::int64_t length, std::int64_t n, std::int64_t rank) {
  Numbers out;
  std::int64_t last = -2;
  for (const IndexRun& run : runs_of(map, length, n, rank)) {
    REQUIRE(run.lo < run.hi);
    REQUIRE(run.lo != last);  // else they are one run
    for (last = run.lo; last < run.hi; ++last) out.push_back(last);
  }
  return out;
}

// Gives each index to its rank, one by one.
std::vector<Numbers> dealt(Rule rule, std::int64_t length, std::int64_t n) {
  std::vector<Numbers> out(to_index(n));
  std::int64_t next = 0;
  for (std::int64_t rank = 0; rank < n; ++rank) {
    std::int64_t count = length / n;
    if (rule == Rule::RemainderFirst && rank < length % n) ++count;
    if (rule == Rule::RemainderLast && n - rank <= length % n) ++count;
    while (rule != Rule::RoundRobin && count-- > 0) out[to_index(rank)].push_back(next++);
  }
  for (std::int64_t i = 0; rule == Rule::RoundRobin && i < length; ++i)
    out[to_index(i % n)].push_back(i);
  return out;
}

// A buffer filled element by element: blocks of rows, one axis that maps or cuts them, and one that
// cuts the other dim.
class SlowFused {
 public:
  SlowFused(const FusedBuffer& of, const ModelTensors& tensors) : of_(of), tensors_(tensors) {
    for (std::size_t t = 0, first = 0; t < tensors.size(); ++t) {
      first_.push_back(static_cast<std::int64_t>(first));
      first += to_index(element_count(tensors[id_of<ModelTensorId>(t)].shape));
    }
  }

  // Row-major in the dims' memory order; empty if the rank has no buffer.
  Numbers of(std::int64_t row, std::int64_t column) const {
    std::vector<std::size_t> blocks = blocks_of(row);
    if (of_.stack == 0) return entry_of(blocks, row, column);
    Numbers out;
    for (std::size_t i = 0; i < blocks.size(); i += to_index(of_.stack)) {
      std::vector<std::size_t> own(blocks.begin() + static_cast<std::ptrdiff_t>(i),
                                   blocks.begin() + static_cast<std::ptrdiff_t>(i) + of_.stack);
      Numbers entry = entry_of(own, row, column);
      out.insert(out.end(), entry.begin(), entry.end());
    }
    return out;
  }

 private:
  Numbers entry_of(const std::vector<std::size_t>& blocks, std::int64_t row,
                   std::int64_t column) const {
    std::vector<Numbers> lines;
    for (std::size_t block : blocks) {
      std::vector<Numbers> own = lines_of(block, row, column);
      if (of_.pad.size() > 0)
        while (std::ssize(own) % of_.pad[0] != 0) own.push_back({});
      lines.insert(lines.end(), own.begin(), own.end());
    }
    std::size_t width = 0;
    for (const Numbers& line : lines) width = std::max(width, line.size());
    while (of_.pad.size() > 0 && width % to_index(of_.pad[1]) != 0) ++width;
    for (Numbers& line : lines) line.resize(width, -1);
    return in_order(lines, width);
  }

  std::int64_t ranks() const { return of_.mesh->axis_size(0); }

  std::vector<std::size_t> blocks_of(std::int64_t row) const {
    std::vector<std::size_t> out;
    if (!of_.indices || of_.indices->blocks == 0) {
      for (std::size_t b = 0; b < of_.blocks.size(); ++b) out.push_back(b);
      return out;
    }
    std::int64_t each = of_.indices->blocks;
    for (std::int64_t index : indices_of(
             of_.indices->map, static_cast<std::int64_t>(of_.blocks.size()) / each, ranks(), row))
      for (std::int64_t b = 0; b < each; ++b) out.push_back(to_index(index * each + b));
    return out;
  }

  // (tensor, row) of every row of a block; tensor -1: none.
  std::vector<std::pair<std::int64_t, std::int64_t>> rows_of(const FusedBlock& block) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    std::vector<std::int64_t> next(block.sections.size(), 0);
    for (bool more = true; more;) {
      more = false;
      for (std::size_t s = 0; s < block.sections.size(); ++s) {
        auto [tensor, units] = block.sections[s];
        std::int64_t length = tensors_[tensor].shape[0];
        std::int64_t count = block.unit_rows == 0 ? length : units * block.unit_rows;
        for (std::int64_t i = 0; i < count && next[s] < length; ++i)
          out.emplace_back(to_index(tensor), next[s]++);
        more = more || next[s] < length;
      }
    }
    while (std::ssize(out) % block.pad != 0) out.emplace_back(-1, 0);
    return out;
  }

  std::vector<Numbers> lines_of(std::size_t block, std::int64_t row, std::int64_t column) const {
    auto all = rows_of(of_.blocks[block]);
    Numbers wanted;
    if (of_.indices && of_.indices->blocks == 0) {
      std::int64_t unit = of_.indices->rows;
      for (std::int64_t index : indices_of(of_.indices->map, std::ssize(all) / unit, ranks(), row))
        for (std::int64_t i = 0; i < unit; ++i) wanted.push_back(index * unit + i);
    } else if (of_.placements.placements[0].is_shard_like()) {
      wanted = chunk(std::ssize(all), ranks(), row);
    } else {
      wanted = chunk(std::ssize(all), 1, 0);
    }
    const std::int64_t width = tensors_[of_.blocks[0].sections[0].tensor].shape[1];
    bool cuts = of_.placements.placements[1].is_shard_like();
    Numbers columns = chunk(width, cuts ? of_.mesh->axis_size(1) : 1, cuts ? column : 0);
    std::vector<Numbers> out;
    for (std::int64_t i : wanted) {
      Numbers& line = out.emplace_back();
      auto [tensor, at] = all[to_index(i)];
      for (std::int64_t c : columns)
        line.push_back(tensor < 0 ? -1 : first_[to_index(tensor)] + at * width + c);
    }
    return out;
  }

  static Numbers chunk(std::int64_t length, std::int64_t n, std::int64_t rank) {
    Numbers out;
    std::int64_t each = (length + n - 1) / n;
    for (std::int64_t i = rank * each; i < std::min(length, (rank + 1) * each); ++i)
      out.push_back(i);
    return out;
  }

  Numbers in_order(const std::vector<Numbers>& lines, std::size_t width) const {
    Numbers out;
    if (of_.order.empty() || of_.order[0] == 0) {
      for (const Numbers& line : lines) out.insert(out.end(), line.begin(), line.end());
    } else {
      for (std::size_t c = 0; c < width; ++c)
        for (const Numbers& line : lines) out.push_back(line[c]);
    }
    return out;
  }

  const FusedBuffer& of_;
  const ModelTensors& tensors_;
  Numbers first_;
};

IndexMap draw_map(Prng& prng, std::int64_t length, std::int64_t n) {
  IndexMap out;
  out.rule = prng.pick<Rule>(
      {Rule::RemainderFirst, Rule::RemainderLast, Rule::RoundRobin, Rule::Sizes, Rule::Lists});
  for (std::int64_t left = length, rank = 0; out.rule == Rule::Sizes && rank < n; ++rank) {
    out.sizes.push_back(rank + 1 == n ? left : prng.between(0, left));
    left -= out.sizes.back();
  }
  if (out.rule == Rule::Lists) {
    out.lists.resize(to_index(n));
    for (std::int64_t i = prng.below(2 * length + 1); i > 0; --i)
      out.lists[to_index(prng.below(n))].push_back(prng.below(length));
  }
  return out;
}

void draw_indices(Prng& prng, std::int64_t each_length, FusedBuffer& buffer) {
  buffer.placements.placements[0] = Placement::replicate();
  MappedIndices indices;
  indices.axes = {0};
  std::int64_t length = std::ssize(buffer.blocks);
  if (prng.one_in(2)) {
    indices.blocks = length % 2 == 0 && prng.one_in(2) ? 2 : 1;
    length /= indices.blocks;
  } else {
    indices.rows = each_length % 2 == 0 && prng.one_in(2) ? 2 : 1;
    length = each_length / indices.rows;
  }
  indices.map = draw_map(prng, length, buffer.mesh->axis_size(0));
  buffer.indices = indices;
}

FusedBuffer draw_fused(Prng& prng, ModelTensors& tensors) {
  FusedBuffer out;
  out.name = "b";
  out.mesh = std::make_shared<const Mesh>(
      Mesh::row_major({static_cast<std::int32_t>(prng.between(1, 4)),
                       static_cast<std::int32_t>(prng.between(1, 2))}));
  out.placements.placements = {prng.one_in(2) ? Placement::shard(0) : Placement::replicate(),
                               prng.one_in(2) ? Placement::shard(1) : Placement::replicate()};
  const std::int64_t groups = prng.between(1, 3), width = prng.between(1, 4);
  std::int64_t length = 0;  // of a block
  const bool sections = prng.one_in(2);
  for (std::int64_t blocks = prng.between(1, 4), b = 0; b < blocks; ++b) {
    FusedBlock block;
    for (std::int64_t s = 0, count = sections ? 2 : 1; s < count; ++s) {
      std::int64_t units = s + 1, unit = 2;
      block.unit_rows = sections ? unit : 0;
      std::string name = "t" + std::to_string(tensors.size());
      block.sections.push_back(
          {tensors.add(name, {units * unit * groups, width}, DType::BF16), sections ? units : 1});
    }
    length = (sections ? 6 : 2) * groups;
    block.pad = 1 + (b == 0 ? prng.below(3) : out.blocks[0].pad - 1);  // blocks of one length
    length = (length + block.pad - 1) / block.pad * block.pad;
    out.blocks.push_back(block);
  }
  if (prng.one_in(3)) out.order = {1, 0};
  if (prng.one_in(3)) out.pad = {prng.between(1, 4), prng.between(1, 4)};
  if (!prng.one_in(3)) draw_indices(prng, length, out);
  const std::int64_t mapped = out.indices ? out.indices->blocks : 0;
  const std::int64_t stack = prng.between(1, 2);
  if (prng.one_in(3) && std::ssize(out.blocks) % stack == 0 && mapped % stack == 0)
    out.stack = stack;
  return out;
}

}  // namespace

TEST_CASE("Index maps give every index to the rank that their rule names") {
  for (Rule rule : {Rule::Even, Rule::RemainderFirst, Rule::RemainderLast, Rule::RoundRobin})
    for (std::int64_t length = 0; length <= 13; ++length)
      for (std::int64_t n = 1; n <= 6; ++n) {
        CAPTURE(static_cast<int>(rule), length, n);
        if (rule == Rule::Even && length % n != 0) {
          CHECK_THROWS_WITH(runs_of({rule}, length, n, 0), Contains("share evenly"));
          continue;
        }
        for (std::int64_t rank = 0; rank < n; ++rank)
          CHECK(indices_of({rule}, length, n, rank) == dealt(rule, length, n)[to_index(rank)]);
      }
  IndexMap sizes{Rule::Sizes, {3, 0, 4}};
  CHECK(indices_of(sizes, 7, 3, 0) == Numbers{0, 1, 2});
  CHECK(indices_of(sizes, 7, 3, 1).empty());
  CHECK(indices_of(sizes, 7, 3, 2) == Numbers{3, 4, 5, 6});
  CHECK_THROWS_WITH(runs_of(sizes, 8, 3, 0), Contains("add up to 8, found 3, 0, 4"));
  CHECK_THROWS_WITH(runs_of(sizes, 6, 3, 0), Contains("add up to 6"));
  CHECK_THROWS_WITH(runs_of(sizes, 7, 2, 0), Contains("each of 2 ranks, found 3"));
  IndexMap lists{Rule::Lists, {}, {{2, 3, 0, 0}, {1}}};
  CHECK(runs_of(lists, 4, 2, 0) == std::vector<IndexRun>{{2, 4}, {0, 1}, {0, 1}});
  CHECK_THROWS_WITH(runs_of(lists, 3, 2, 0), Contains("below 3, found 3"));
  CHECK_THROWS_WITH(runs_of({Rule::RoundRobin}, std::int64_t{1} << 60, 2, 0), Contains("2^24"));
}

TEST_CASE("Fused buffers with mapped indices and padding, element by element") {
  Prng prng(11);
  int mapped = 0, repeated = 0, stacked = 0;
  for (int i = 0; i < 20'000 / kOneOf; ++i) {
    ModelTensors tensors;
    FusedBuffer buffer = draw_fused(prng, tensors);
    Stored side(tensors);
    add_fused(side, buffer);
    ElementNumbers numbers = element_numbers(side);
    SlowFused slow(buffer, tensors);
    INFO("case " << i);
    for (std::int32_t p = 0; p < buffer.mesh->size(); ++p) {
      MeshCoordinate at = buffer.mesh->coordinate(p);
      auto id = side.find(buffer.mesh->rank_at(p), "b");
      Numbers expected = slow.of(at[0], at[1]);
      REQUIRE((id ? numbers[to_index(*id)] : Numbers{}) == expected);
      std::set<std::int64_t> once(expected.begin(), expected.end());
      repeated += once.size() < expected.size() && !once.contains(-1) ? 1 : 0;
    }
    mapped += buffer.indices ? 1 : 0;
    stacked += buffer.stack != 0 && !buffer.order.empty() && buffer.blocks.size() > 1 ? 1 : 0;
  }
  CHECK(mapped > 10'000 / kOneOf);
  CHECK(repeated > 500 / kOneOf);
  CHECK(stacked > 500 / kOneOf);
}

// Blocks of 2 x 3; where scales lie, the same generator says of the tensors of scales.
TEST_CASE("Scales of buffers in any order of dims and of stacks, element by element") {
  Prng prng(12);
  int moved = 0;
  for (int i = 0; i < 5'000 / kOneOf; ++i) {
    ModelTensors tensors;
    FusedBuffer buffer, scales;
    const std::int32_t rows = static_cast<std::int32_t>(prng.between(1, 3));
    const std::int64_t columns = prng.between(1, 3), blocks = prng.between(1, 4);
    const bool cuts_rows = prng.one_in(2);
    buffer.name = "b";
    buffer.mesh = std::make_shared<const Mesh>(Mesh::row_major({rows}));
    buffer.placements.placements = {cuts_rows ? Placement::shard(0) : Placement::shard(1)};
    if (prng.one_in(2)) buffer.order = {1, 0};
    if (prng.one_in(2)) buffer.stack = blocks % 2 == 0 ? prng.between(1, 2) : 1;
    scales = buffer;
    for (std::int64_t b = 0; b < blocks; ++b) {
      auto name = fmt::format("t{}", b);
      std::int64_t length = 2 * (cuts_rows ? rows : prng.between(1, 2));
      if (buffer.stack != 0 && !cuts_rows) length = 2;
      std::int64_t width = 3 * columns * (cuts_rows ? 1 : rows);
      auto id = tensors.add(name, {length, width}, DType::BF16);
      auto scale = tensors.add_scales(name + ".scale", {id, {2, 3}}, DType::F32);
      buffer.blocks.push_back({{{id, 1}}});
      scales.blocks.push_back({{{scale, 1}}});
    }
    scales.name = "s";
    Stored side(tensors), expected(tensors);
    add_fused(side, buffer);
    add_scales(side, {"s", "b"});
    add_fused(expected, scales);
    ElementNumbers found = element_numbers(side), wanted = element_numbers(expected);
    INFO("case " << i);
    for (std::int32_t rank = 0; rank < rows; ++rank) {
      auto id = side.find(Rank{rank}, "s"), other = expected.find(Rank{rank}, "s");
      REQUIRE(id.has_value());
      REQUIRE(other.has_value());
      REQUIRE(found[to_index(*id)] == wanted[to_index(*other)]);
      REQUIRE(side.buffers()[*id].shape == expected.buffers()[*other].shape);
    }
    moved += !buffer.order.empty() && buffer.stack != 0 ? 1 : 0;
  }
  CHECK(moved > 500 / kOneOf);
}
