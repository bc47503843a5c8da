// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/nccl/nccl_constants.h"

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/ids.h"

namespace reshard::sim::nccl {
namespace {

// 2.30.7.
constexpr Constants kNewest{
    .base_us = {{{6.8, 14.0, 8.4},
                 {6.6, 14.0, 8.4},
                 {0, 0, 0},
                 {0, 0, 0},
                 {0, 0, 0},
                 {0, 0, 0},
                 {8.0, 8.0, 8.0}}},
    .step_us = {{
        {{{0.6, 1.25, 4.0},
          {0.6, 1.9, 3.4},
          {0, 0, 3.7},
          {0, 0, 2.8},
          {0, 0, 25},
          {0, 0, 25},
          {0, 0, 4.0}}},
        {{{1.0, 1.9, 4.0},
          {1.0, 2.5, 5.7},
          {0, 0, 3.7},
          {0, 0, 2.8},
          {0, 0, 0},
          {0, 0, 0},
          {0, 0, 4.0}}},
        {{{5.0, 8.5, 14.0},
          {2.7, 4.0, 14.0},
          {0, 0, 31},
          {0, 0, 30},
          {0, 0, 18},
          {0, 0, 20.9},
          {0, 0, 14.0}}},
    }},
    .ll_total = {{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}},
    .ring_ll128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}},
    .tree_ll128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}},
    .tree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}},
    .nvls_tree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}},
    .nvls_efficiency = {0, 0, 0.85, 0.74},
    .tree_share = {{
        {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
        {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
        {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
         .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
    }},
};

// 2.28.9: other constants for Blackwell.
constexpr Constants older() {
  Constants out = kNewest;
  out.ring_ll128[3] = {73.4, 34.6, 73.4};
  out.nvls_tree[3] = {0, 96, 43.8};
  return out;
}
constexpr Constants kOlder = older();

struct Version {
  std::string_view name;
  const Constants& constants;
};
// Ascending. A version without constants read from its own source has those of the nearest version
// that was read.
constexpr std::array<Version, 4> kVersions{
    {{"2.27", kOlder}, {"2.28", kOlder}, {"2.29", kNewest}, {"2.30", kNewest}}};

}  // namespace

std::string_view text(Algorithm algorithm) {
  constexpr std::array<std::string_view, kAlgorithms> kNames{
      "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
  return kNames[to_index(algorithm)];
}

std::string_view text(Protocol protocol) {
  constexpr std::array<std::string_view, kProtocols> kNames{"LL", "LL128", "Simple"};
  return kNames[to_index(protocol)];
}

Generation generation_of(int compute_capability) {
  return compute_capability >= 100  ? Generation::Blackwell
         : compute_capability >= 90 ? Generation::Hopper
         : compute_capability >= 80 ? Generation::Ampere
                                    : Generation::Volta;
}

const Constants& constants_of(std::string_view version, std::string_view field) {
  if (version.empty()) return kVersions.back().constants;
  for (const Version& known : kVersions)
    if (version == known.name ||
        (version.starts_with(known.name) && version[known.name.size()] == '.'))
      return known.constants;
  throw InputError(
      fmt::format("{}: expected one of {}, found {}", field, known_versions(), quoted(version)));
}

std::string known_versions() {
  std::string out;
  for (const Version& version : kVersions) {
    if (!out.empty()) out += ", ";
    out += version.name;
  }
  return out;
}

}  // namespace reshard::sim::nccl
