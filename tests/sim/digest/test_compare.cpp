// SPDX-License-Identifier: BSD-3-Clause
// Drawn corruptions of ranks' buffers: each is found in the blocks whose bytes differ, in no other,
// and is called what it is.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "core/base/errors.h"
#include "sim/digest/compare.h"
#include "sim/digest/digest_report.h"
#include "sim/trace/line_reader.h"
#include "tests/support/part.h"
#include "tests/support/weights_files.h"

using namespace reshard;
using namespace reshard::sim;
using Catch::Matchers::Contains;

namespace {

using Memory = std::vector<std::vector<std::byte>>;  // by buffer

// Four ranks with fused heads, columns, a norm on all, and an 8-bit table with padding.
constexpr std::string_view kModel = R"~({"reshard_check": 1}
{"tensor": "q", "shape": [48, 20], "dtype": "bf16"}
{"tensor": "k", "shape": [24, 20], "dtype": "bf16"}
{"tensor": "v", "shape": [24, 20], "dtype": "bf16"}
{"tensor": "o", "shape": [30, 32], "dtype": "f32"}
{"tensor": "norm", "shape": [64], "dtype": "f32"}
{"tensor": "table", "shape": [26, 16], "dtype": "f8e4m3"}
{"tensor": "head", "alias_of": "table"}
{"side": "from", "buffer": "all", "mesh": "1", "ranks": "9", "fused": ["q:2 k:1 v:1 x6"]}
{"side": "to", "buffer": "qkv", "mesh": "4", "fused": ["q", "k", "v"], "placements": "S(0)"}
{"side": "to", "tensor": "o", "mesh": "4", "placements": "S(1)", "order": [1, 0]}
{"side": "to", "tensor": "norm", "mesh": "4"}
{"side": "to", "buffer": "table", "mesh": "4", "fused": ["table pad8"], "placements": "S(0)"}
{"side": "to", "tensor": "head", "mesh": "4", "placements": "S(0)"}
)~";

class World {
 public:
  explicit World(std::uint64_t seed, std::int64_t rows) : prng(seed) {
    std::istringstream in{std::string(kModel)};
    LineReader lines(in, "m");
    layouts = read_sides(lines, "m");
    bytes = draw_bytes("model");
    before = draw_bytes("before");
    weights.emplace(folder / "model");
    weights_before.emplace(folder / "before");
    expected = digests_of_weights(layouts, *weights, kDigestSides, rows);
    memory = test::filled_buffers(side(), bytes);
    old = test::filled_buffers(side(), before);
  }

  const Stored& side() const { return *layouts.destination; }
  std::size_t buffer(int rank, std::string_view name) const {
    return to_index(side().find(Rank{rank}, name).value());
  }
  const StoredPart& part(std::size_t buffer, std::string_view tensor) const {
    for (const StoredPart& part : side().buffers()[buffer].parts)
      if ((*layouts.tensors)[part.tensor].name == tensor) return part;
    FAIL("no such part");
    throw;
  }
  // The bytes of rows of a part of the bf16 buffer 'qkv', in global indices.
  std::span<std::byte> rows(int rank, std::string_view tensor, std::int64_t first,
                            std::int64_t last) {
    std::size_t b = buffer(rank, "qkv");
    const StoredPart& of = part(b, tensor);
    REQUIRE(of.box.lo[0] <= first);
    REQUIRE(last <= of.box.hi[0]);
    return std::span(memory[b]).subspan(to_index(of.offset + (first - of.box.lo[0]) * 20) * 2,
                                        to_index(last - first) * 40);
  }

  Digests wrote(const std::set<int>& without = {}) const {
    Digests out;
    out.file = "wrote";
    out.rows = expected.rows;
    SideDigests& all = out.of(DigestSide::To).emplace(no_digests(side()));
    for (int rank = 0; rank < 4; ++rank) {
      if (without.contains(rank)) continue;
      std::vector<HeldBuffer> held;
      for (std::size_t b = 0; b < memory.size(); ++b)
        if (side().buffers()[b].rank == Rank{rank})
          held.push_back({std::string(side().buffers()[b].name), memory[b]});
      Digests one = digests_of_buffers(layouts, DigestSide::To, Rank{rank}, held, expected.rows[0]);
      for (std::size_t b = 0; b < memory.size(); ++b)
        if (side().buffers()[b].rank == Rank{rank}) all[b] = (*one.of(DigestSide::To))[b];
    }
    return out;
  }
  DigestComparison compared(bool with_weights, const std::set<int>& without = {}) const {
    constexpr DigestSide kTo[] = {DigestSide::To};
    return compare_digests(layouts, expected, wrote(without), kTo,
                           with_weights ? &*weights : nullptr, {&*weights_before, nullptr});
  }

  // Rank, buffer and block of all places, from the findings and from the bytes.
  using Blocks = std::set<std::tuple<Rank, std::string, ModelTensorId, Box>>;
  Blocks found(const DigestComparison& comparison) const {
    Blocks out;
    for (const DigestFinding& finding : comparison.findings)
      for (const DigestFault& fault : finding.faults) {
        const StoredBuffer& buffer = side().buffers()[fault.buffer];
        const StoredPart& part = buffer.parts[to_index(fault.part)];
        std::int64_t rows = expected.rows[part.tensor];
        for (std::int64_t i = 0; i < block_count(fault.box, rows); ++i)
          out.emplace(buffer.rank, buffer.name, part.tensor, block_at(fault.box, rows, i));
      }
    return out;
  }
  Blocks different() const {
    Blocks out;
    Memory right = test::filled_buffers(side(), bytes);
    for (std::size_t b = 0; b < memory.size(); ++b) {
      const StoredBuffer& buffer = side().buffers()[b];
      auto size = to_index(size_bytes(buffer.dtype));
      for (const StoredPart& part : buffer.parts)
        for (std::int64_t i = 0; i < part.box.volume(); ++i) {
          DimVector at = index_at(i, part.box.extents());
          std::int64_t place = part.offset;
          for (int d = 0; d < at.size(); ++d) place += at[d] * part.strides[d];
          if (std::memcmp(&memory[b][to_index(place) * size], &right[b][to_index(place) * size],
                          size) == 0)
            continue;
          std::int64_t rows = expected.rows[part.tensor];
          std::int64_t block = (part.box.lo[0] + at[0]) / rows - part.box.lo[0] / rows;
          out.emplace(buffer.rank, buffer.name, part.tensor, block_at(part.box, rows, block));
        }
    }
    return out;
  }

  test::Prng prng;
  ModelLayouts layouts;
  test::TensorBytes bytes, before;
  std::optional<Weights> weights, weights_before;
  Digests expected;
  Memory memory, old;

 private:
  test::TensorBytes draw_bytes(const std::string& name) {
    test::TensorBytes out = test::draw_bytes(*layouts.tensors, prng);
    test::write_file(folder / name, test::safetensors_of(*layouts.tensors, out));
    return out;
  }
  test::TemporaryFolder folder;
};

// Makes a corruption of some kind, and returns the kind that is to be found.
DigestFaultKind corrupt(World& world, std::int64_t kind, std::int64_t rows) {
  test::Prng& prng = world.prng;
  auto rank = static_cast<int>(prng.below(4));
  switch (kind) {
    case 0: {  // a bit, of any buffer; of padding it is not seen
      auto& bytes =
          world.memory[to_index(prng.below(static_cast<std::int64_t>(world.memory.size())))];
      bytes[to_index(prng.below(static_cast<std::int64_t>(bytes.size())))] ^= std::byte{1};
      return DigestFaultKind::OtherData;
    }
    case 1: {  // a buffer never written
      auto& bytes =
          world.memory[to_index(prng.below(static_cast<std::int64_t>(world.memory.size())))];
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      return DigestFaultKind::Zeros;
    }
    case 2: {  // a buffer left as it was
      std::size_t b = to_index(prng.below(static_cast<std::int64_t>(world.memory.size())));
      world.memory[b] = world.old[b];
      return DigestFaultKind::Stale;
    }
    case 3: {  // blocks of two ranks
      int other = (rank + 1) % 4;
      auto a = world.rows(rank, "q", 12 * rank, 12 * rank + 12);
      auto b = world.rows(other, "q", 12 * other, 12 * other + 12);
      std::swap_ranges(a.begin(), a.end(), b.begin());
      return DigestFaultKind::WrongIndex;
    }
    case 4: {  // k and v
      auto a = world.rows(rank, "k", 6 * rank, 6 * rank + 6);
      auto b = world.rows(rank, "v", 6 * rank, 6 * rank + 6);
      std::swap_ranges(a.begin(), a.end(), b.begin());
      return DigestFaultKind::WrongTensor;
    }
    default: {  // rows moved up by less than a block, and the last ones left
      std::int64_t by = prng.between(1, std::max<std::int64_t>(1, rows - 1));
      auto all = world.rows(rank, "q", 12 * rank, 12 * rank + 12);
      std::copy(all.begin() + by * 40, all.end(), all.begin());
      return DigestFaultKind::WrongIndex;
    }
  }
}

}  // namespace

TEST_CASE("drawn corruptions are found where they are, and are called what they are") {
  std::set<std::pair<DigestFaultKind, std::int64_t>> seen;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 120 / test::kOneOf; ++seed) {
    auto kind = static_cast<std::int64_t>(seed % 6),
         rows = 1 + static_cast<std::int64_t>(seed / 6 % 4);
    CAPTURE(seed, kind, rows);
    World world(seed, rows);
    DigestFaultKind to_be_found = corrupt(world, kind, rows);
    DigestComparison comparison = world.compared(true);
    World::Blocks different = world.different();
    REQUIRE(world.found(comparison) == different);
    if (different.empty()) continue;  // in padding
    ++wrong;
    bool all = true, any = false;
    for (const DigestFinding& finding : comparison.findings) {
      all = all && finding.kind == to_be_found;
      any = any || finding.kind == to_be_found;
      if (kind == 3 || kind == 4) CHECK(finding.faults.front().swapped);
      if (kind == 3) CHECK(finding.faults.front().got_ranks.size() == 1);
      if (kind == 5 && finding.kind == to_be_found && finding.faults.front().whole)
        CHECK(finding.shift.value() > 0);
    }
    CHECK(any);
    if (kind < 5) CHECK(all);
    seen.emplace(to_be_found, kind);
  }
  CHECK(wrong >= 100 / test::kOneOf);
  CHECK(seen.size() == 6);
}

TEST_CASE("what is right is equal, and padding does not count") {
  World world(1, 4);
  for (auto& byte : world.memory[world.buffer(3, "table")])
    if (byte == std::byte{0x5a}) byte = std::byte{1};  // elements of 0x5a, too
  World::Blocks different = world.different();
  for (const auto& [rank, buffer, tensor, box] : different) CHECK(buffer == "table");
  world.memory = test::filled_buffers(world.side(), world.bytes);
  DigestComparison comparison = world.compared(true);
  CHECK(comparison.findings.empty());
  CHECK(comparison.blocks > 0);
  DigestReport report{"e", "w", &world.layouts, comparison};
  CHECK(verdict(report) == "equal");
  CHECK_THAT(digest_text(report, 10, 80), Contains("every rank has what it should"));
}

TEST_CASE("findings are said in the names of the model") {
  World world(3, 2);
  auto said = [&](bool with_weights, const std::set<int>& without = {}) {
    DigestReport report{"e", "w", &world.layouts, world.compared(with_weights, without)};
    CHECK_FALSE(digest_json(report).empty());
    std::string text = digest_text(report, 10, 200);
    return text.substr(text.find("verdict"));
  };
  SECTION("swapped tensors") {
    auto a = world.rows(2, "k", 12, 18), b = world.rows(2, "v", 12, 18);
    std::swap_ranges(a.begin(), a.end(), b.begin());
    CHECK_THAT(said(false), Contains("rank 2: k[12:18,:] in 'qkv' has v[12:18,:]") &&
                                Contains("looks like: swapped with 'v'"));
  }
  SECTION("swapped ranks") {
    auto a = world.rows(2, "k", 12, 18), b = world.rows(1, "k", 6, 12);
    std::swap_ranges(a.begin(), a.end(), b.begin());
    CHECK_THAT(said(false), Contains("rank 2: k[12:18,:] in 'qkv' has k[6:12,:]") &&
                                Contains("looks like: swapped with rank 1") &&
                                Contains("looks like: swapped with rank 2"));
  }
  SECTION("shifted by less than a block: found with the weights only") {
    auto all = world.rows(1, "q", 12, 24);
    std::copy(all.begin() + 40, all.end(), all.begin());
    CHECK_THAT(said(true), Contains("rank 1: q[12:22,:] in 'qkv' has q[13:23,:]") &&
                               Contains("shifted by 1 row, later ones are there"));
    CHECK_THAT(said(false), Contains("other data"));
  }
  SECTION("shifted by a block: found without them") {
    auto all = world.rows(1, "q", 12, 24);
    std::copy(all.begin() + 80, all.end(), all.begin());
    CHECK_THAT(said(false), Contains("rank 1: q[12:22,:] in 'qkv' has q[14:24,:]") &&
                                Contains("shifted by 2 rows, later ones are there"));
  }
  SECTION("data that go on otherwise: found by their head") {
    World wide(3, 4);
    auto to = wide.rows(1, "k", 8, 12), from = wide.rows(1, "v", 8, 12);
    std::copy(from.begin(), from.end(), to.begin());
    to[150] ^= std::byte{1};
    DigestReport report{"e", "w", &wide.layouts, wide.compared(false)};
    CHECK_THAT(digest_text(report, 10, 200),
               Contains("rank 1: k[8:12,:] in 'qkv' begins with v[8:12,:]"));
    // The weights tell how much of a row is looked up.
    report.comparison = wide.compared(true);
    CHECK_THAT(digest_text(report, 10, 200), Contains("in 'qkv' begins with v[8:10,:]"));
  }
  SECTION("zeros and stale data, on several ranks") {
    for (int rank = 0; rank < 4; ++rank) {
      auto& norm = world.memory[world.buffer(rank, "norm")];
      if (rank == 1)
        norm = world.old[world.buffer(rank, "norm")];
      else
        std::fill(norm.begin(), norm.end(), std::byte{0});
    }
    CHECK_THAT(said(false), Contains("ranks 0,2-3: norm[:] in 'norm' is all zeros") &&
                                Contains("looks like: never written") &&
                                Contains("rank 1: norm[:] in 'norm' is as it was before") &&
                                Contains("looks like: not written again"));
  }
  SECTION("an alias by its own name, in a buffer with padding") {
    world.memory[world.buffer(1, "head")][3] ^= std::byte{4};
    CHECK_THAT(said(false), Contains("rank 1: head[7,:] in 'head' has data of no known place"));
  }
  SECTION("ranks without digests") {
    CHECK_THAT(said(false, {1, 3}),
               Contains("missing") && Contains("ranks 1,3: no digests of any buffer"));
  }
}

TEST_CASE("digests of something else are refused") {
  World world(5, 2);
  constexpr DigestSide kTo[] = {DigestSide::To}, kFrom[] = {DigestSide::From};
  Digests wrote = world.wrote();
  CHECK_THROWS_WITH(compare_digests(world.layouts, world.expected, wrote, kFrom, nullptr, {}),
                    Contains("wrote: expected digests of the side from, found none"));
  CHECK_THROWS_WITH(compare_digests(world.layouts, wrote, world.expected, kFrom, nullptr, {}),
                    Contains("wrote: expected digests of the side from, found none"));
  Digests lacking = wrote;
  (*lacking.of(DigestSide::To))[0][0] = nullptr;
  CHECK_THROWS_WITH(compare_digests(world.layouts, lacking, wrote, kTo, nullptr, {}),
                    Contains("expected digests of every part"));
  Digests other = wrote;
  other.rows[0] = 3;
  CHECK_THROWS_WITH(compare_digests(world.layouts, world.expected, other, kTo, nullptr, {}),
                    Contains("expected blocks of 2 rows of tensor 'q'"));
  CHECK_THROWS_WITH(
      compare_digests(world.layouts, world.expected, wrote, kTo, nullptr, {nullptr, &other}),
      Contains("expected blocks of 2 rows"));
  // An earlier file of digests in place of earlier weights.
  std::swap(world.memory, world.old);
  Digests stale = world.wrote();
  DigestComparison comparison =
      compare_digests(world.layouts, world.expected, stale, kTo, nullptr, {nullptr, &stale});
  REQUIRE_FALSE(comparison.findings.empty());
  for (const DigestFinding& finding : comparison.findings)
    CHECK(finding.kind == DigestFaultKind::Stale);
}
