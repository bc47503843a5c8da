// SPDX-License-Identifier: BSD-3-Clause
// Our model of how PyTorch does random redistributions stays the same: the steps of both of its
// planners, joined steps, costs, shard orders, known defects. Lines of DebugMode, intact and
// damaged, are read as before. To accept an intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_torch "drawn*"
//
// rewrites tests/core/torch/data/*.txt; read the difference before you accept it.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdlib>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/torch/debug_line.h"
#include "core/torch/known_defects.h"
#include "core/torch/merge.h"
#include "core/torch/redistribution.h"
#include "tests/support/pinned.h"
#include "tests/support/prng.h"

namespace reshard::test {
namespace {

constexpr int kLines = 200, kMovesOfLine = 80, kDebugLines = 60, kDebugOfLine = 60;

std::string short_digest(std::string_view text) { return digest_of(text).hex().substr(0, 8); }

// ---- redistributions

// One word per axis; axes that cut one dim come in any order, or in that of the mesh.
std::string drawn_side(Prng& prng, int axes, int dims) {
  std::vector<std::string> words(to_index(axes), "R");
  std::vector<std::vector<std::size_t>> cut(to_index(dims));
  const std::string op = prng.pick<std::string>({"sum", "sum", "avg", "max", "min", "product"});
  bool strided = prng.one_in(4), partial = prng.one_in(4);
  for (std::size_t axis = 0; axis < words.size(); ++axis) {
    std::int64_t way = prng.below(8);
    if (way == 0 || (partial && way > 3))
      words[axis] = fmt::format("P({})", op == "avg" && prng.one_in(2) ? "sum" : op);
    if (way < 3 || dims == 0 || words[axis] != "R") continue;
    std::int64_t dim = prng.one_in(2) ? 0 : prng.below(dims);
    words[axis] = fmt::format("S({})", dim);
    if (strided && prng.one_in(2)) {
      words[axis] = fmt::format("_S({}, {})", dim, prng.pick<int>({2, 2, 3, 4, 6}));
    } else {
      cut[to_index(dim)].push_back(axis);
    }
  }
  if (!strided && prng.one_in(3))
    for (const std::vector<std::size_t>& axes_of_dim : cut) {
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < axes_of_dim.size(); ++i) order.push_back(i);
      prng.shuffle(order);
      for (std::size_t i = 0; i < order.size(); ++i)
        words[axes_of_dim[i]] += fmt::format("[{}]", order[i]);
    }
  std::string out;
  for (const std::string& word : words) out += word;
  return out;
}

Request drawn_request(Prng& prng) {
  for (;;) {
    const std::string axes = prng.pick<std::string>(
        {"2", "3", "4", "8", "2x2", "2x2", "2x3", "3x2", "4x2", "1x4", "2x2x2", "2x1x3", "2x4x2"});
    auto mesh = std::make_shared<const Mesh>(parse_mesh(axes));
    std::string shape;
    int dims = prng.pick<int>({0, 1, 1, 1, 2, 2, 2, 3});
    std::int64_t scale = prng.pick<std::int64_t>({1, 1, 1, 64, 1024});
    for (int d = 0; d < dims; ++d)
      shape += fmt::format(
          "{}{}", d > 0 ? "," : "",
          scale * prng.pick<std::int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 16, 24, 25}));
    std::string dtype = prng.pick<std::string>({"f32", "f32", "bf16", "f64", "i32", "bool"});
    const std::string from = drawn_side(prng, mesh->axes(), dims),
                      to = drawn_side(prng, mesh->axes(), dims);
    try {
      return Request(parse_layout(shape, dtype, mesh, from), parse_layout(shape, dtype, mesh, to));
    } catch (const InputError&) {
      // No such tensor, or a forbidden transition: draw again.
    }
  }
}

std::string words_of(const Layout& source, const std::vector<TorchStep>& steps) {
  std::string out;
  for (const TorchStep& step : steps)
    out += fmt::format("{}:{}->{} ", step.axis, text(step.from), text(step.to));
  for (std::size_t count : joined_steps(source, steps)) out += fmt::format("{} ", count);
  return out;
}

// Nothing that PyTorch would not say of the same request.
std::string moves_of(const Request& request, std::int32_t devices_per_host) {
  std::string out = fmt::format("{}\n  greedy {} {:.9g}us {:.9g}us: {}\n", request.text(),
                                torch_plans_greedily(request),
                                torch_redistribute_cost_us(request, devices_per_host),
                                torch_min_cost_us(request, devices_per_host),
                                words_of(request.source(), torch_greedy_steps(request)));
  if (std::optional<OrderedRequest> ordered = as_shard_orders(request)) {
    out += fmt::format("  as {} -> {}, exact {}, can {}\n", ordered->source.placements_text(),
                       ordered->target.placements_text(), ordered->exact, can_search(*ordered));
    for (WantedAddends addends : {WantedAddends::Any, WantedAddends::AsRequested}) {
      if (!can_search(*ordered)) continue;
      std::vector<TorchStep> steps = torch_min_cost_steps(*ordered, devices_per_host, addends);
      out += fmt::format("  least {}, makes {}\n", words_of(ordered->source, steps),
                         make_wanted_addends(*ordered, steps));
    }
  }
  for (const TorchDefect& defect : torch_known_defects(request, devices_per_host))
    out += fmt::format("  #{} {}\n", defect.issue, defect.what);
  return out;
}

std::string moves_line(int number) {
  Prng prng(static_cast<std::uint64_t>(number));
  std::string all, first;
  for (int i = 0; i < kMovesOfLine; ++i) {
    Request request = drawn_request(prng);
    all += moves_of(request, prng.pick<std::int32_t>({1, 2, 4, 8, 16}));
    if (i == 0) first = request.text();
  }
  if (std::getenv("RESHARD_SHOW")) fmt::print("{}", all);
  return fmt::format("{} {} ... {}", number, first, short_digest(all));
}

TEST_CASE("drawn moves are planned, priced and warned of as they were") {
  check_lines("tests/core/torch/data/drawn_moves.txt", kLines, moves_line);
}

// ---- lines of DebugMode

std::string reading_of(const std::string& line) {
  try {
    DebugLine read = parse_debug_line(line, "--debug-line");
    std::string out = fmt::format("{} {} '{}' '{}' '{}'", read.shape ? text(*read.shape) : "none",
                                  read.of_one_rank, read.dtype, read.from, read.to);
    if (!read.shape) return out;
    return out + fmt::format(" [{}]", text(global_shape(read, parse_mesh("2x4"), "--debug-line")));
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string debug_line(int number) {
  Prng prng(static_cast<std::uint64_t>(number));
  const std::vector<std::string> whole{
      "redistribute_input(t$2: f32[1, 32], trace: S(0)R->S(0)S(1)->RS(1))",
      "  redistribute_input [explicit] (t: bf16[4, 32], trace: P(sum)R->RR)  ",
      "redistribute_input [implicit] (0, R -> P(sum))",
      "redistribute_input [implicit] (1, [S(0), R] -> [R, R])",
      "redistribute_input(dt: i64[]| RR, trace: RR->RR)",
      "redistribute_input(dt: f32[3, 8]| _S(0, 2)S(1), trace: _S(0, 2)S(1)->RR)",
      "redistribute_input(ft: f32[8, 8]{requires_grad=True, a=(1, 2)}, trace: S(1)S(1)->RR)",
      "redistribute_input(t$2: f32[8, 1], trace: S(0)S(9)->RR)  ->  t$3: f32[64, 1]"};
  const std::string letters = "[](){}:,|->$ tdf0123SRP x";
  std::string all;
  for (int i = 0; i < kDebugOfLine; ++i) {
    std::string line = prng.pick(whole);
    for (std::int64_t changes = prng.below(3); changes > 0; --changes) {
      std::size_t at = to_index(prng.below(std::ssize(line)));
      std::size_t gone = to_index(prng.below(prng.one_in(4) ? 12 : 2));
      std::size_t more = to_index(prng.below(2));
      line.replace(at, gone, more, letters[to_index(prng.below(std::ssize(letters)))]);
    }
    all += fmt::format("{}\n  {}\n", line, reading_of(line));
  }
  if (std::getenv("RESHARD_SHOW")) fmt::print("{}", all);
  return fmt::format("{} {}", number, short_digest(all));
}

TEST_CASE("drawn lines of DebugMode are read or refused as they were") {
  check_lines("tests/core/torch/data/drawn_debug_lines.txt", kDebugLines, debug_line);
}

}  // namespace
}  // namespace reshard::test
