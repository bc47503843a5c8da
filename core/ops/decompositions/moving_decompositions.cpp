// SPDX-License-Identifier: BSD-3-Clause
// Operators that move elements elsewhere, or search for them.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/ops/decompositions/steps.h"

namespace reshard {
namespace {

void rot90(Steps& s) {
  std::vector<std::int64_t> dims = s.attributes().integers("dims");
  if (dims.size() != 2) s.refuse("attr dims: expected two dims");
  std::int64_t turns = ((s.attributes().integer("k", 1) % 4) + 4) % 4;
  if (turns == 0) return s.give(s("clone", {s.in(0)}));
  if (turns == 2) return s.give(s("flip", {s.in(0)}, {{"dims", list(dims)}}));
  StepTensor flipped = s("flip", {s.in(0)}, {{"dims", list({dims[turns == 1 ? 1 : 0]})}});
  s.give(s("transpose.int", {flipped}, {{"dim0", integer(dims[0])}, {"dim1", integer(dims[1])}}));
}

// Keeps all leading dims; applies a view, a permutation and a view back to the last three.
void shuffle(Steps& s, const std::vector<std::int64_t>& apart, std::vector<std::int64_t> order,
             const std::vector<std::int64_t>& joined) {
  Shape shape = s.shape(s.in(0));
  std::int64_t before = shape.size() - 3;
  auto with_batch = [&](const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> out(shape.begin(), shape.begin() + before);
    out.insert(out.end(), sizes.begin(), sizes.end());
    return list(out);
  };
  std::vector<std::int64_t> dims(static_cast<std::size_t>(before));
  std::iota(dims.begin(), dims.end(), 0);
  for (std::int64_t dim : order) dims.push_back(before + dim);
  StepTensor view = s("view", {s.in(0)}, {{"size", with_batch(apart)}});
  StepTensor permuted = s("clone", {s("permute", {view}, {{"dims", list(dims)}})});
  s.give(s("clone", {s("_unsafe_view", {permuted}, {{"size", with_batch(joined)}})}));
}

struct Image {
  std::int64_t channels, height, width, factor;
};

Image image_of(const Steps& s, std::string_view factor_name) {
  const Shape& shape = s.shape(s.in(0));
  if (shape.size() < 3) s.refuse("expected channels, height and width");
  Image out{shape[shape.size() - 3], shape[shape.size() - 2], shape[shape.size() - 1],
            s.attributes().integer(factor_name)};
  if (out.factor < 1 || out.factor > 1 << 16)
    s.refuse(fmt::format("attr {}: expected 1 or more, found {}", factor_name, out.factor));
  return out;
}

void pixel_shuffle(Steps& s) {
  Image image = image_of(s, "upscale_factor");
  std::int64_t f = image.factor, channels = image.channels / (f * f);
  if (image.channels % (f * f) != 0)
    s.refuse(fmt::format("expected channels in multiples of {}, found {}", f * f, image.channels));
  shuffle(s, {channels, f, f, image.height, image.width}, {0, 3, 1, 4, 2},
          {channels, image.height * f, image.width * f});
}

void pixel_unshuffle(Steps& s) {
  Image image = image_of(s, "downscale_factor");
  std::int64_t f = image.factor;
  if (image.height % f != 0 || image.width % f != 0)
    s.refuse(fmt::format("expected height and width in multiples of {}, found {} and {}", f,
                         image.height, image.width));
  shuffle(s, {image.channels, image.height / f, f, image.width / f, f}, {0, 2, 4, 1, 3},
          {image.channels * f * f, image.height / f, image.width / f});
}

void channel_shuffle(Steps& s) {
  Shape shape = s.shape(s.in(0));
  std::int64_t groups = s.attributes().integer("groups");
  if (shape.size() < 3 || groups < 1 || shape[1] % groups != 0)
    s.refuse("expected channels in multiples of groups");
  std::vector<std::int64_t> apart{shape[0], groups, shape[1] / groups},
      joined(shape.begin(), shape.end());
  apart.insert(apart.end(), shape.begin() + 2, shape.end());
  StepTensor view = s("view", {s.in(0)}, {{"size", list(apart)}});
  StepTensor turned = s("transpose.int", {view}, {{"dim0", integer(1)}, {"dim1", integer(2)}});
  s.give(s("_unsafe_view", {s("clone", {turned})}, {{"size", list(joined)}}));
}

void narrow_copy(Steps& s) {
  std::int64_t start = s.attributes().integer("start"), length = s.attributes().integer("length");
  StepTensor cut = s("slice.Tensor", {s.in(0)},
                     {{"dim", integer(s.attributes().integer("dim"))},
                      {"start", integer(start)},
                      {"end", integer(start + length)}});
  s.give(s("clone", {cut}));
}

void unbind_copy(Steps& s) {
  StepTensor first =
      s.several("unbind.int", {s.in(0)}, {{"dim", integer(s.attributes().integer("dim", 0))}});
  int count = s.all().back().outs;
  for (int i = 0; i < count; ++i) s.give(s("clone", {first + i}));
}

// Compares every element with every test value. PyTorch does so for few values, and sorts many.
void isin(Steps& s) {
  const OpValue* value = s.attributes().find("test_element");
  if (value) return s.give(s("eq.Scalar", {s.in(0)}, {{"other", *value}}));
  if (s.in(1) == kNoTensor) s.refuse("expected test_element, found none");
  Shape elements = s.shape(s.in(0)), tests = s.shape(s.in(1));
  std::vector<std::int64_t> sizes(elements.begin(), elements.end());
  std::vector<std::int64_t> reduced;
  for (int d = 0; d < std::max(tests.size(), 1); ++d) {
    sizes.push_back(1);
    reduced.push_back(-1 - d);
  }
  StepTensor view = s("view", {s.in(0)}, {{"size", list(sizes)}});
  StepTensor same = s("eq.Tensor", {view, s.in(1)});
  s.give(s("any.dims", {same}, {{"dim", list(reduced)}}));
}

constexpr Decomposition kMovingDecompositions[]{
    {"rot90", rot90},
    {"pixel_shuffle", pixel_shuffle},
    {"pixel_unshuffle", pixel_unshuffle},
    {"channel_shuffle", channel_shuffle},
    {"narrow_copy", narrow_copy},
    {"unbind_copy.int", unbind_copy},
    {"isin.Tensor_Tensor", isin},
    {"isin.Tensor_Scalar", isin},
};

}  // namespace

std::span<const Decomposition> moving_decompositions() { return kMovingDecompositions; }

}  // namespace reshard
