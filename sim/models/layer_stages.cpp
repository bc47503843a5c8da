// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/layer_stages.h"

#include <numeric>
#include <string>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::sim {
namespace {

constexpr int kMostEntries = 1 << 16;

std::vector<int> refuse_empty(std::vector<int> counts, int layers) {
  for (int count : counts)
    if (count < 1)
      throw InputError(fmt::format("pp: expected at most as many stages as layers, found {} for {}",
                                   counts.size(), layers));
  return counts;
}

// How many layers each stage has, counting the embedding and the loss if the options do.
std::vector<int> counts_of(const MegatronStages& options, int layers) {
  const int n = options.stages, ends = (options.first > 0) + (options.last > 0);
  const bool counted = options.counts_embedding || options.counts_loss;
  if (counted && ends > 0)
    throw InputError(
        "first, last: expected neither where the embedding or the loss is counted as a layer");
  // A single stage has the number given for the last one.
  if (n == 1 && ends == 2) {
    if (options.last == layers) return {layers};
    throw InputError(
        fmt::format("last: expected all {} layers where pp is 1, found {}", layers, options.last));
  }
  const int all = layers + options.counts_embedding + options.counts_loss,
            rest = all - options.first - options.last, middle = n - ends;
  if (rest < 0 || (middle == 0 ? rest != 0 : rest % middle != 0))
    throw InputError(fmt::format(
        "pp: expected stages that share {} layers evenly, found {}; Megatron takes first=N, "
        "last=N, embedding-in-split, loss-in-split or layout=...",
        ends > 0 ? fmt::format("the other {}", rest) : std::to_string(all), middle));
  std::vector<int> out;
  if (options.first > 0) out.push_back(options.first);
  for (int i = 0; i < middle; ++i) out.push_back(rest / middle);
  if (options.last > 0) out.push_back(options.last);
  return out;
}

// pipeline_model_parallel_layout: letters E, t, m and L; '|' ends a chunk; "x*3" and "(..)*3"
// repeat; commas have no meaning.
class LayoutString {
 public:
  explicit LayoutString(std::string_view text) : cursor_(text, "layout") {}

  std::vector<std::string> chunks() {
    std::string all = sequence();
    cursor_.expect_end();
    std::vector<std::string> out(1);
    for (char letter : all)
      if (letter == '|')
        out.emplace_back();
      else
        out.back() += letter;
    return out;
  }

 private:
  std::string sequence() {
    std::string out;
    for (; !cursor_.at_end() && cursor_.peek() != ')';) {
      std::string item;
      if (cursor_.accept(",")) continue;
      if (cursor_.accept("(")) {
        if (++depth_ > 8) throw InputError("layout: expected at most 8 levels of parentheses");
        item = sequence();
        cursor_.expect(")");
        --depth_;
      } else {
        for (const char* letter : {"E", "t", "m", "L", "|"})
          if (item.empty() && cursor_.accept(letter)) item = letter;
        if (item.empty()) cursor_.fail("E, t, m, L, '|' or '('");
      }
      std::int64_t times = cursor_.accept("*") ? cursor_.integer("a number", 1, kMostEntries) : 1;
      if (std::ssize(out) + std::ssize(item) * times > kMostEntries)
        throw InputError(fmt::format("layout: expected at most {} entries", kMostEntries));
      for (; times > 0; --times) out += item;
    }
    return out;
  }

  Cursor cursor_;
  int depth_ = 0;
};

StageSplit by_layout(const MegatronStages& options, int layers) {
  std::vector<std::string> chunks = LayoutString(options.layout).chunks();
  const int n = options.stages;
  if (std::ssize(chunks) % n != 0)
    throw InputError(
        fmt::format("layout: expected a multiple of {} chunks (pp), found {}", n, chunks.size()));
  if (n == 1 && chunks.size() > 1)
    throw InputError(
        fmt::format("layout: expected a single chunk where pp is 1, found {}", chunks.size()));
  StageSplit out(static_cast<std::size_t>(n));
  int next = 0;
  int embeddings = 0, heads = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    StageChunk chunk;
    for (char letter : chunks[i]) {
      if (letter == 't') chunk.layers.push_back(next++);
      if (letter == 'E') chunk.has_embedding = ++embeddings > 0;
      if (letter == 'L') chunk.has_head = ++heads > 0;
    }
    out[i % out.size()].push_back(std::move(chunk));
  }
  if (next != layers || embeddings != 1 || heads != 1 || !chunks.front().starts_with('E') ||
      !chunks.back().ends_with('L'))
    throw InputError(
        fmt::format("layout: expected E first, {} t and L last, found {} E, {} t and {} L in {}",
                    layers, embeddings, next, heads, quoted(options.layout)));
  return out;
}

}  // namespace

StageSplit split_of(const std::vector<int>& counts) {
  StageSplit out;
  int next = 0;
  for (int count : counts) {
    StageChunk chunk;
    for (int i = 0; i < count; ++i) chunk.layers.push_back(next++);
    out.push_back({std::move(chunk)});
  }
  out.front().front().has_embedding = out.back().back().has_head = true;
  return out;
}

StageSplit megatron_stages(const MegatronStages& options, int layers) {
  if (!options.layout.empty()) {
    if (options.first > 0 || options.last > 0 || options.counts_embedding || options.counts_loss)
      throw InputError("layout: expected no first, last, embedding-in-split or loss-in-split");
    return by_layout(options, layers);
  }
  if (options.chunks > 1 && options.stages == 1)
    throw InputError(fmt::format("vpp: expected 1 where pp is 1, found {}", options.chunks));
  std::vector<int> counts = counts_of(options, layers);
  for (int count : counts)
    if (count % options.chunks != 0)
      throw InputError(
          fmt::format("vpp: expected a number that divides the {} layers of a stage, found {}",
                      count, options.chunks));
  // Chunk 0 of every stage comes first, then chunk 1 of every stage. If the embedding or the loss
  // counts as a layer, the first chunk of all, or the last, has one layer less.
  StageSplit out(counts.size());
  int next = 0;
  for (int c = 0; c < options.chunks; ++c)
    for (std::size_t stage = 0; stage < counts.size(); ++stage) {
      const bool is_first = c == 0 && stage == 0,
                 is_last = c + 1 == options.chunks && stage + 1 == counts.size();
      int count = counts[stage] / options.chunks - (is_first && options.counts_embedding) -
                  (is_last && options.counts_loss);
      if (count < 0)
        throw InputError("pp: expected a layer for the embedding and the loss each, found none");
      StageChunk chunk;
      for (; count > 0; --count) chunk.layers.push_back(next++);
      out[stage].push_back(std::move(chunk));
    }
  out.front().front().has_embedding = out.back().back().has_head = true;
  return out;
}

std::vector<int> vllm_stages(int layers, int stages) {
  std::vector<int> out(static_cast<std::size_t>(stages), layers / stages);
  for (int i = 0; i < layers % stages; ++i) ++out[static_cast<std::size_t>(stages - 2 - i)];
  return refuse_empty(std::move(out), layers);
}

std::vector<int> sglang_stages(int layers, int stages) {
  std::vector<int> out(static_cast<std::size_t>(stages), layers / stages);
  for (int i = 0; i < layers % stages; ++i) ++out[static_cast<std::size_t>(stages - 1 - i)];
  return refuse_empty(std::move(out), layers);
}

std::vector<int> tensorrt_llm_stages(int layers, int stages) {
  std::vector<int> out(static_cast<std::size_t>(stages), layers / stages);
  for (int i = 0; i < layers % stages; ++i) ++out[static_cast<std::size_t>(i)];
  return refuse_empty(std::move(out), layers);
}

std::vector<int> stages_in(std::string_view text, int layers, int stages) {
  Cursor cursor(text, "layers");
  std::vector<int> out;
  do out.push_back(static_cast<int>(cursor.integer("a number of layers", 0, 1 << 20)));
  while (cursor.accept(","));
  cursor.expect_end();
  if (std::ssize(out) != stages ||
      std::accumulate(out.begin(), out.end(), std::int64_t{0}) != layers)
    throw InputError(fmt::format("layers: expected {} numbers that add up to {}, found {}", stages,
                                 layers, quoted(text)));
  return out;
}

}  // namespace reshard::sim
