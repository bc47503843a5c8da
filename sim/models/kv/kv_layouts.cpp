// SPDX-License-Identifier: BSD-3-Clause
// Writes the layouts of a cache as lines of a file for `reshard check`. Consecutive blocks are one
// part as long as their tokens have one stride, so a cache with its blocks in the order of the
// pool has one part for each array, whatever its length.
#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/layout/mesh.h"
#include "sim/models/kv/kv_transfer.h"

namespace reshard::sim {
namespace {

constexpr std::int64_t kMostParts = std::int64_t{1}
                                    << 22;  // the most that a file can have for a side

// Keys, values or latent vectors.
struct Kind {
  const char* name;
  std::int64_t index, channels;
};
std::vector<Kind> kinds_of(const KvModel& model) {
  if (model.is_latent()) return {{"latent", 0, model.key_dim}};
  return {{"k", 0, model.key_dim}, {"v", 1, model.value_dim}};
}

// An array of a rank: its extents and strides by KvDim. A dim that it lacks has extent 1 and stride
// 0.
class Array {
 public:
  Array(const KvSide& side, std::int64_t layers, std::int64_t heads, std::int64_t channels,
        const char* field)
      : dims_(side.form.dims) {
    at(extents_, KvDim::Layers) = layers;
    at(extents_, KvDim::Kv) = 2;
    at(extents_, KvDim::Blocks) = side.table.pool;
    at(extents_, KvDim::Heads) = heads;
    at(extents_, KvDim::Tokens) = side.dealing.block;
    at(extents_, KvDim::Channels) = channels;
    std::int64_t stride = 1;
    for (auto dim = dims_.rbegin(); dim != dims_.rend(); ++dim) {
      at(strides_, *dim) = stride;
      auto product = checked_product(stride, at(extents_, *dim));
      if (!product || *product > kMaxBytes / 8)
        throw InputError(
            fmt::format("{}: expected arrays of at most 2^62 bytes, found larger ones", field));
      stride = *product;
    }
  }
  std::int64_t stride(KvDim dim) const { return strides_[static_cast<std::size_t>(dim)]; }
  std::string shape() const {
    std::string out;
    for (KvDim dim : dims_)
      out += fmt::format("{}{}", out.empty() ? "" : ",", extents_[static_cast<std::size_t>(dim)]);
    return out;
  }

 private:
  static std::int64_t& at(std::int64_t (&of)[6], KvDim dim) {
    return of[static_cast<std::size_t>(dim)];
  }
  const std::vector<KvDim>& dims_;
  std::int64_t extents_[6] = {}, strides_[6] = {};
};

// Tokens lo to hi-1, beginning at an element of an array.
struct Run {
  std::int64_t lo, hi, offset;
};
std::vector<Run> runs_of(const std::vector<KvPiece>& pieces, const Array& array) {
  std::int64_t block = array.stride(KvDim::Blocks), token = array.stride(KvDim::Tokens);
  std::vector<Run> out;
  for (const KvPiece& piece : pieces) {
    std::int64_t offset = piece.block * block + piece.at * token;
    if (!out.empty() && out.back().hi == piece.lo &&
        out.back().offset + (piece.lo - out.back().lo) * token == offset)
      out.back().hi = piece.hi;
    else
      out.push_back({piece.lo, piece.hi, offset});
  }
  return out;
}

class SideLines {
 public:
  SideLines(const KvTransfer& transfer, const KvSide& side, bool is_source, std::string& out)
      : transfer_(transfer), side_(side), is_source_(is_source), out_(out) {}

  void write() {
    const KvParallel& parallel = side_.parallel;
    std::vector<std::int64_t> starts =
        stage_starts(parallel, transfer_.model.layers, is_source_ ? "--from" : "--to");
    for (std::int64_t stage = 0; stage < parallel.pp; ++stage)
      for (const auto& [share, ranks] : shares_of(stage))
        write_share(share, ranks, starts[static_cast<std::size_t>(stage)],
                    starts[static_cast<std::size_t>(stage) + 1]);
  }

 private:
  struct Less {
    bool operator()(const KvShare& a, const KvShare& b) const {
      return std::tie(a.token_group, a.head_lo) < std::tie(b.token_group, b.head_lo);
    }
  };
  // Groups the ranks of a stage by what they have.
  std::map<KvShare, std::vector<Rank>, Less> shares_of(std::int64_t stage) const {
    std::map<KvShare, std::vector<Rank>, Less> out;
    for (std::int64_t cp = 0; cp < side_.parallel.cp; ++cp)
      for (std::int64_t tp = 0; tp < side_.parallel.tp; ++tp)
        out[share_of(side_.parallel, transfer_.model.heads, cp, tp)].push_back(
            side_.rank_at(stage, cp, tp));
    return out;
  }

  const char* form_field() const { return is_source_ ? "--form" : "--to-form"; }

  void write_share(const KvShare& share, const std::vector<Rank>& ranks, std::int64_t first,
                   std::int64_t last) {
    std::vector<KvPiece> pieces =
        pieces_of(side_.table, side_.dealing, transfer_.tokens, share.token_group);
    if (pieces.empty()) return;  // there are fewer tokens than one round deals
    bool joint = side_.form.has(KvDim::Kv), whole = side_.form.has(KvDim::Layers);
    std::vector<Kind> kinds = kinds_of(transfer_.model);
    std::size_t step = joint ? kinds.size() : 1;
    for (std::int64_t layer = first; layer < last; layer = whole ? last : layer + 1)
      for (std::size_t kind = 0; kind < kinds.size(); kind += step)
        write_buffer(share, ranks, pieces,
                     {kinds.begin() + static_cast<std::ptrdiff_t>(kind),
                      kinds.begin() + static_cast<std::ptrdiff_t>(kind + step)},
                     layer, whole ? last : layer + 1);
  }

  // Writes one array of layers first to last-1 and of some kinds.
  void write_buffer(const KvShare& share, const std::vector<Rank>& ranks,
                    const std::vector<KvPiece>& pieces, const std::vector<Kind>& kinds,
                    std::int64_t first, std::int64_t last) {
    Array array(side_, last - first, share.head_hi - share.head_lo, kinds.front().channels,
                form_field());
    std::vector<Run> runs = runs_of(pieces, array);
    auto parts = static_cast<std::int64_t>(runs.size() * kinds.size()) * (last - first);
    count(parts, is_row_major(share, kinds.front(), array),
          static_cast<std::int64_t>(ranks.size()));
    std::string name = kinds.size() > 1 ? "kv" : kinds.front().name;
    if (!side_.form.has(KvDim::Layers)) name = fmt::format("layers.{}.{}", first, name);
    fmt::format_to(
        std::back_inserter(out_),
        R"({{"side": "{}", "buffer": "{}", "ranks": "{}", "shape": [{}], "dtype": "{}", )"
        R"("parts": [)",
        is_source_ ? "from" : "to", name, ranks_text(ranks), array.shape(), text(transfer_.dtype));
    const char* separator = "";
    for (std::int64_t layer = first; layer < last; ++layer)
      for (const Kind& kind : kinds) {
        std::int64_t base = (layer - first) * array.stride(KvDim::Layers) +
                            (kinds.size() > 1 ? kind.index * array.stride(KvDim::Kv) : 0);
        for (const Run& run : runs) {
          out_ += std::exchange(separator, ", ");
          write_part(share, layer, kind, array, {run.lo, run.hi, base + run.offset});
        }
      }
    out_ += "]}\n";
  }

  void write_part(const KvShare& share, std::int64_t layer, const Kind& kind, const Array& array,
                  const Run& run) {
    std::string box = fmt::format("{}:{}", run.lo, run.hi),
                strides = fmt::to_string(array.stride(KvDim::Tokens));
    if (!transfer_.model.is_latent()) {
      box += fmt::format(",{}:{}", share.head_lo, share.head_hi);
      strides += fmt::format(", {}", array.stride(KvDim::Heads));
    }
    fmt::format_to(std::back_inserter(out_),
                   R"({{"tensor": "layers.{}.{}", "box": "{},:", "offset": {})", layer, kind.name,
                   box, run.offset);
    if (!is_row_major(share, kind, array))
      fmt::format_to(std::back_inserter(out_), R"(, "strides": [{}, {}])", strides,
                     array.stride(KvDim::Channels));
    out_ += '}';
  }

  // A part that is row-major needs no strides.
  bool is_row_major(const KvShare& share, const Kind& kind, const Array& array) const {
    std::int64_t heads = share.head_hi - share.head_lo, head = array.stride(KvDim::Heads);
    return array.stride(KvDim::Channels) == 1 &&
           array.stride(KvDim::Tokens) == heads * kind.channels &&
           (heads == 1 || head == kind.channels);
  }

  // Adds to the count of values in the file: a part is an object of three values, and may have a
  // list of strides; `ranks` ranks have an array like this one.
  void count(std::int64_t parts, bool row_major, std::int64_t ranks) {
    std::int64_t most = (kMaxJsonValues - 64) / (row_major ? 4 : 8);
    if (parts > most)
      throw InputError(fmt::format(
          "{}: expected arrays of at most {} parts, one for each layer, keys or values, "
          "and run of blocks that are neighbours in memory, found {}",
          form_field(), most, parts));
    parts_ += (parts + 1) * ranks;  // the array counts as well
    if (parts_ > kMostParts)
      throw InputError(fmt::format(
          "{}: expected at most {} runs of blocks that are neighbours in memory, of all layers and "
          "ranks, found more",
          is_source_ ? "--from-blocks" : "--to-blocks", kMostParts));
  }

  const KvTransfer& transfer_;
  const KvSide& side_;
  bool is_source_;
  std::string& out_;
  std::int64_t parts_ = 0;
};

}  // namespace

std::string kv_layouts(const KvTransfer& transfer) {
  const KvModel& model = transfer.model;
  std::string out = "{\"reshard_check\": 1}\n";
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const Kind& kind : kinds_of(model))
      fmt::format_to(std::back_inserter(out),
                     R"({{"tensor": "layers.{}.{}", "shape": [{}{}, {}], "dtype": "{}"}})"
                     "\n",
                     layer, kind.name, transfer.tokens,
                     model.is_latent() ? "" : fmt::format(", {}", model.heads), kind.channels,
                     text(transfer.dtype));
  SideLines(transfer, transfer.from, true, out).write();
  SideLines(transfer, transfer.to, false, out).write();
  return out;
}

}  // namespace reshard::sim
