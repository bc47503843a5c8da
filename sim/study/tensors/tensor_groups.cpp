// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/tensors/tensor_groups.h"

#include <map>
#include <string_view>
#include <utility>

#include "core/base/digest.h"
#include "core/demand/likeness.h"

namespace reshard::sim {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A name as text and numbers in turn, text first: "h", "12", ".w", "1", "".
std::vector<std::string_view> pieces_of(std::string_view name) {
  std::vector<std::string_view> out;
  for (bool number = false; !name.empty() || !number; number = !number) {
    std::size_t end = 0;
    while (end < name.size() && is_digit(name[end]) == number) ++end;
    out.push_back(name.substr(0, end));
    name.remove_prefix(end);
  }
  return out;
}

void add_side(const Layout& layout, Hasher& hasher) {
  if (layout.is_product()) {
    std::string placements = layout.placements_text();
    hasher.add(static_cast<std::int64_t>(placements.size()));
    hasher.add(placements);
  } else {
    add_boxes(hasher, layout);
  }
  const Mesh& mesh = layout.mesh();
  hasher.add(std::int64_t{mesh.axes()});
  for (std::int32_t size : mesh.shape()) hasher.add(std::int64_t{size});
  for (Rank rank : mesh.ranks())
    hasher.add(std::int64_t{to_int(rank)} - to_int(mesh.ranks().front()));
}

// Equal for requests that differ in translations of ranks only.
Digest translated(const Request& request) {
  Hasher hasher;
  hasher.add(static_cast<std::int64_t>(request.dtype()));
  hasher.add(static_cast<std::int64_t>(request.shape().size()));
  for (std::int64_t extent : request.shape()) hasher.add(extent);
  add_side(request.source(), hasher);
  add_side(request.destination(), hasher);
  return hasher.digest();
}

// A kind that is being collected; the pieces are those of its first tensor's name.
struct Collected {
  TensorGroup group;
  std::vector<std::string_view> pieces;
  std::vector<bool> differs;  // by piece

  void add(std::size_t tensor, const std::vector<std::string_view>& name) {
    group.tensors.push_back(tensor);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (name[i] != pieces[i]) differs[i] = true;
  }
  TensorGroup named() && {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      group.name += differs[i] ? std::string_view("*") : pieces[i];
    return std::move(group);
  }
};

}  // namespace

std::vector<const Request*> pointers_to(std::span<const Request> requests) {
  std::vector<const Request*> out;
  out.reserve(requests.size());
  for (const Request& request : requests) out.push_back(&request);
  return out;
}

std::vector<TensorGroup> tensor_kinds(std::span<const Request* const> tensors) {
  std::map<Digest, Digest> translated_of;  // by fingerprint: equal tensors are looked at once
  // By what tensors are, and the text between the numbers of their names.
  std::map<std::pair<Digest, std::vector<std::string_view>>, std::size_t> known;
  std::vector<Collected> kinds;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Request& request = *tensors[t];
    auto [same, is_new] = translated_of.try_emplace(request.fingerprint());
    if (is_new) same->second = translated(request);
    std::vector<std::string_view> pieces = pieces_of(request.name()), texts = pieces;
    for (std::size_t i = 1; i < texts.size(); i += 2) texts[i] = {};
    auto [at, first] = known.try_emplace({same->second, std::move(texts)}, kinds.size());
    if (first) kinds.push_back({{}, pieces, std::vector<bool>(pieces.size())});
    kinds[at->second].add(t, pieces);
  }
  std::vector<TensorGroup> out;
  for (Collected& kind : kinds) out.push_back(std::move(kind).named());
  return out;
}

}  // namespace reshard::sim
