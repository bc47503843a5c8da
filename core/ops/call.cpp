// SPDX-License-Identifier: BSD-3-Clause
// Placements of operators' tensors, and their text as PyTorch prints it.
#include "core/ops/call.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard {

OpPlacement::OpPlacement(const Placement& placement)
    : dim(placement.dim), op(placement.op), split_factor(placement.split_factor) {
  switch (placement.kind) {
    case Placement::Kind::Replicate:
      kind = Kind::Replicate;
      break;
    case Placement::Kind::Shard:
      kind = Kind::Shard;
      break;
    case Placement::Kind::StridedShard:
      kind = Kind::StridedShard;
      break;
    case Placement::Kind::Partial:
      kind = Kind::Partial;
      break;
  }
}

OpPlacement OpPlacement::norm_partial(double norm, bool is_number) {
  OpPlacement out;
  out.norm_is_number = is_number;
  out.kind = Kind::NormPartial;
  out.norm = norm;
  return out;
}

OpPlacement OpPlacement::mask_partial(const Shape& mask_shape, int dim, int mask_dims) {
  OpPlacement out;
  out.kind = Kind::MaskPartial;
  out.dim = static_cast<std::int8_t>(dim);
  out.mask_shape = mask_shape;
  out.mask_dims = static_cast<std::int8_t>(mask_dims);
  return out;
}

Placement OpPlacement::carried() const {
  switch (kind) {
    case Kind::Replicate:
      return Placement::replicate();
    case Kind::Shard:
      return Placement::shard(dim);
    case Kind::StridedShard:
      return Placement::strided_shard(dim, split_factor);
    case Kind::Partial:
      return Placement::partial(op);
    case Kind::NormPartial:
    case Kind::MaskPartial:
      break;
  }
  return Placement::partial(ReduceOp::Sum);
}

std::string text(const OpPlacement& placement) {
  if (placement.kind == OpPlacement::Kind::NormPartial)
    return placement.norm_is_number && placement.norm == std::floor(placement.norm)
               ? fmt::format("_NormP({:.1f})", placement.norm)
               : fmt::format("_NormP({})", placement.norm);
  if (placement.kind == OpPlacement::Kind::MaskPartial) {
    std::string sizes;
    for (std::int64_t size : placement.mask_shape)
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
    return fmt::format("MaskP(sum, torch.Size([{}]), {})", sizes, placement.dim);
  }
  return text(placement.carried());
}

std::string text(const OpPlacements& placements) {
  std::string out;
  for (const OpPlacement& placement : placements) out += text(placement);
  return out;
}

std::string text(const PlacedTensors& tensors) {
  std::string out;
  for (const std::optional<OpPlacements>& placements : tensors)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", placements ? text(*placements) : "-");
  return out;
}

namespace {

// The end of the placement that begins at `at`: "R", or a word with its parentheses.
std::size_t word_end(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size() && text[at] != 'R'; ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) break;
  }
  return std::min(at + 1, text.size());
}

// Parses "_NormP(2.0)" and "MaskP(sum, torch.Size([32, 12]), 0)"; nullopt for anything else.
std::optional<OpPlacement> parse_partial_of_operators(std::string_view word) {
  constexpr std::string_view kNorm = "_NormP(", kMask = "MaskP(sum, torch.Size([";
  auto number_at = [&](std::string_view digits, auto& out) {
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return error == std::errc() ? digits.substr(static_cast<std::size_t>(end - digits.data()))
                                : std::string_view("?");
  };
  if (word.starts_with(kNorm)) {
    std::string order(word.substr(kNorm.size()));
    double norm = 0;
    if (number_at(order, norm) != ")") return std::nullopt;
    return OpPlacement::norm_partial(norm, order.find('.') != std::string::npos);
  }
  std::size_t close = word.find("]), ");
  if (!word.starts_with(kMask) || close == std::string_view::npos) return std::nullopt;
  Shape shape = parse_shape(word.substr(kMask.size(), close - kMask.size()));
  int dim = 0;
  if (number_at(word.substr(close + 4), dim) != ")" || dim < 0 || dim >= shape.size())
    return std::nullopt;
  return OpPlacement::mask_partial(shape, dim);
}

}  // namespace

OpPlacements parse_op_placements(std::string_view text, int axes, std::string_view field) {
  OpPlacements out;
  for (std::size_t at = 0; at < text.size();) {
    std::string_view word = text.substr(at, word_end(text, at) - at);
    if (std::optional<OpPlacement> own = parse_partial_of_operators(word)) {
      out.push_back(*own);
    } else {
      out.emplace_back(parse_placements(word, 1, kMaxDims, field).placements[0]);
    }
    at += word.size();
  }
  if (static_cast<int>(out.size()) != axes)
    throw InputError(fmt::format("{}: expected {} placements as PyTorch prints them, found {}",
                                 field, axes, quoted(text)));
  return out;
}

bool has_strided(const OpPlacements& placements) {
  return std::any_of(placements.begin(), placements.end(), [](const OpPlacement& placement) {
    return placement.kind == OpPlacement::Kind::StridedShard;
  });
}

std::vector<int> axes_cutting(const OpPlacements& placements, int dim) {
  std::vector<int> out;
  for (std::size_t axis = 0; axis < placements.size(); ++axis)
    if (placements[axis].is_shard_like() && placements[axis].dim == dim)
      out.push_back(static_cast<int>(axis));
  return out;
}

Layout layout_of_dim(std::int64_t length, const OpPlacements& placements, int dim,
                     const std::vector<int>& axes, std::span<const std::int32_t> sizes) {
  std::vector<std::int32_t> shape;
  std::vector<Placement> along;
  for (int axis : axes) {
    const OpPlacement& placement = placements[to_index(axis)];
    shape.push_back(sizes[to_index(axis)]);
    along.push_back(placement.is_shard_like() && placement.dim == dim ? placement.carried()
                                                                      : Placement::replicate());
    along.back().dim = 0;
  }
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major(std::move(shape)));
  return Layout(Shape{length}, DType::I8, std::move(mesh), std::move(along));
}

DType call_dtype(std::string_view text, std::string_view field) {
  return text == "u64" || text == "uint64" ? DType::I64 : parse_dtype(text, field);
}

std::string text(const TensorSpec& spec) {
  std::string sizes;
  for (std::int64_t size : spec.meta.shape)
    sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
  return fmt::format("{}[{}]({})", text(spec.meta.dtype), sizes, text(spec.placements));
}

}  // namespace reshard
