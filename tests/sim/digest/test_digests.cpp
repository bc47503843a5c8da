// SPDX-License-Identifier: BSD-3-Clause
// Digests of drawn layouts, from weights and from ranks' buffers, against those of elements that
// are put together one by one; and their file.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/digest/digest64.h"
#include "sim/digest/digest_file.h"
#include "tests/support/drawn_models.h"
#include "tests/support/part.h"
#include "tests/support/weights_files.h"

using namespace reshard;
using namespace reshard::sim;
using Catch::Matchers::Contains;

namespace {

// The bytes of a tensor's elements, row-major, of the rows that are in `first` to `last`.
std::string elements(const ModelTensor& tensor, const std::string& bytes, const Box& box,
                     std::int64_t first, std::int64_t last) {
  std::string out;
  auto size = static_cast<std::size_t>(size_bytes(tensor.dtype));
  for (std::int64_t i = 0; i < element_count(tensor.shape); ++i) {
    DimVector at = index_at(i, tensor.shape);
    bool in = at.size() == 0 || (at[0] >= first && at[0] < last);
    for (int d = 0; d < at.size(); ++d) in = in && at[d] >= box.lo[d] && at[d] < box.hi[d];
    if (in) out += bytes.substr(to_index(i) * size, size);
  }
  return out;
}

std::uint64_t hash(const std::string& bytes) {
  return digest64_of(std::as_bytes(std::span(bytes)));
}

// As docs/digest.md says it.
BlockDigests slow_digests(const ModelTensor& tensor, const std::string& bytes, const Box& box,
                          std::int64_t rows) {
  BlockDigests out;
  std::int64_t end = tensor.shape.size() == 0 ? 1 : tensor.shape[0];
  for (std::int64_t first = 0; first < end; first += rows) {
    std::string block = elements(tensor, bytes, box, first, first + rows);
    if (block.empty()) continue;
    out.blocks.push_back(hash(block));
    std::string head;
    for (std::int64_t row = first; row < first + rows && head.size() < 64; ++row)
      head += elements(tensor, bytes, box, row, row + 1);
    out.heads.push_back(hash(head.substr(0, 4096)));
  }
  return out;
}

ModelLayouts layouts_of(test::DrawnModel&& model) {
  return {std::move(model.tensors), std::move(model.source), std::move(model.destination), nullptr};
}

const std::string& bytes_of(const test::TensorBytes& bytes, const ModelTensors& tensors,
                            ModelTensorId id) {
  return bytes.at(tensors[tensors[id].same_as].name);
}

}  // namespace

TEST_CASE("digests are those of the elements, whoever has them and however they lie") {
  test::TemporaryFolder folder;
  std::int64_t blocks = 0;
  for (std::uint64_t seed = 0; seed < 400 / test::kOneOf; ++seed) {
    CAPTURE(seed);
    test::Prng prng(seed);
    ModelLayouts layouts = layouts_of(test::draw_unconverted_model(prng));
    test::TensorBytes bytes = test::draw_bytes(*layouts.tensors, prng);
    test::write_file(folder / "model.safetensors", test::safetensors_of(*layouts.tensors, bytes));
    std::int64_t rows = prng.between(0, 5);
    Weights weights(folder.path());
    Digests expected = digests_of_weights(layouts, weights, kDigestSides, rows);
    std::vector<DigestFile> files;
    for (DigestSide side : kDigestSides) {
      const Stored& stored = side_of(layouts, side);
      auto memory = test::filled_buffers(stored, bytes);
      for (Rank rank : stored.ranks()) {
        std::vector<HeldBuffer> held;
        for (std::size_t b = 0; b < memory.size(); ++b)
          if (stored.buffers()[b].rank == rank)
            held.push_back({std::string(stored.buffers()[b].name), memory[b]});
        files.push_back(file_of(digests_of_buffers(layouts, side, rank, held, rows), layouts));
      }
      for (std::size_t b = 0; b < memory.size(); ++b)
        for (std::size_t p = 0; p < stored.buffers()[b].parts.size(); ++p) {
          const StoredPart& part = stored.buffers()[b].parts[p];
          BlockDigests slow = slow_digests((*layouts.tensors)[part.tensor],
                                           bytes_of(bytes, *layouts.tensors, part.tensor), part.box,
                                           expected.rows[part.tensor]);
          REQUIRE(*(*expected.of(side))[b][p] == slow);
          blocks += static_cast<std::int64_t>(slow.blocks.size());
        }
    }
    // What ranks give is the same, and a file is read as it was written.
    std::string text = write_digest_file(file_of(expected, layouts));
    REQUIRE(write_digest_file(gathered(files)) == text);
    DigestFile again = read_digest_file(text, "f");
    REQUIRE(write_digest_file(file_of(digests_in(again, layouts, "f"), layouts)) == text);
  }
  CHECK(blocks > 400);
}

TEST_CASE("blocks begin at multiples of their rows") {
  Box box{{5, 0}, {17, 2}};
  REQUIRE(block_count(box, 4) == 4);
  CHECK(block_at(box, 4, 0) == Box{{5, 0}, {8, 2}});
  CHECK(block_at(box, 4, 1) == Box{{8, 0}, {12, 2}});
  CHECK(block_at(box, 4, 3) == Box{{16, 0}, {17, 2}});
  CHECK(block_count(box, 1) == 12);
  CHECK(block_count(box, kMaxBytes) == 1);
  CHECK(block_at(box, kMaxBytes, 0) == box);
  CHECK(block_at(Box{}, 4, 0) == Box{});
  // Rows of 16 KiB: 64 have a MiB.
  CHECK(default_rows({"w", {8192, 8192}, DType::BF16, {}}) == 64);
  CHECK(default_rows({"w", {8192}, DType::BF16, {}}) == std::int64_t{1} << 19);
  CHECK(default_rows({"w", {2, std::int64_t{1} << 30}, DType::BF16, {}}) == 1);
}

TEST_CASE("a digest does not depend on how elements are gathered") {
  test::Prng prng(7);
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes += static_cast<char>(prng.below(256));
  auto memory = std::as_bytes(std::span(bytes));
  ViewDigester digester;
  auto slow = [&](const StridedView& view, std::int64_t size) {
    std::string out;
    for (std::int64_t i = 0; i < view.count(); ++i) {
      DimVector at = index_at(i, view.extents);
      std::int64_t element = view.offset;
      for (int d = 0; d < at.size(); ++d) element += at[d] * view.strides[d];
      out += bytes.substr(to_index(element * size), to_index(size));
    }
    return out;
  };
  // In one piece, long pieces, short ones, transposed, both in turn, a scalar.
  for (const StridedView& view :
       {StridedView{3, {100, 200}, {200, 1}}, StridedView{0, {20, 5000}, {5100, 1}},
        StridedView{1, {500, 10}, {12, 1}}, StridedView{0, {100, 200}, {1, 100}},
        StridedView{0, {3, 4, 4500}, {20000, 4600, 1}}, StridedView{5, {}, {}},
        StridedView{5, {1, 1}, {0, 7}}, StridedView{0, {70, 1, 90}, {90, 3, 1}}})
    for (std::int64_t size : {1, 2}) {
      std::string all = slow(view, size);
      CHECK(digester.digest(memory, view, size) == hash(all));
      for (std::int64_t most : {1, 64, 4096})
        CHECK(digester.digest(memory, view, size, most) == hash(all.substr(0, to_index(most))));
    }
  CHECK(digester.zeros(200'001) == hash(std::string(200'001, '\0')));
  CHECK(digest64_text(0x0123456789abcdef) == "0123456789abcdef");
  CHECK(parse_digest64("0123456789abcdef") == 0x0123456789abcdef);
  CHECK_FALSE(parse_digest64("0123456789abcdeF"));
  CHECK_FALSE(parse_digest64("123456789abcdef"));
}

TEST_CASE("a buffer that is converted has no digests") {
  ModelLayouts layouts;
  layouts.tensors = std::make_unique<ModelTensors>();
  ModelTensorId w = layouts.tensors->add("w", {4, 2}, DType::BF16);
  layouts.source = std::make_unique<Stored>(*layouts.tensors);
  layouts.destination = std::make_unique<Stored>(*layouts.tensors);
  StoredBuffer buffer{Rank{0}, "w", {4, 2}, DType::F32, {{w, box_of({4, 2}), 0, {2, 1}}}, true};
  layouts.destination->add(buffer);
  std::string bytes(32, 'x');
  HeldBuffer held{"w", std::as_bytes(std::span(bytes))};
  CHECK_THROWS_WITH(digests_of_buffers(layouts, DigestSide::To, Rank{0}, {&held, 1}, 0),
                    Contains("converted to f32"));
}
