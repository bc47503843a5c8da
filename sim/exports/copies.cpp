// SPDX-License-Identifier: BSD-3-Clause
// Lines of copies: as boxes of tensors, and as ranges of bytes, merged where they are neighbours at
// both ends.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/exports/direct_moves.h"
#include "sim/report/json.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMostRanges = std::size_t{1} << 24;

std::string quoted_json(std::string_view text) { return Json(text).dump(); }

// A range of bytes at both ends.
struct Range {
  Rank from, to;
  std::string_view source, destination;  // buffers
  std::int64_t to_byte, from_byte, bytes;
  auto key() const { return std::tie(from, to, source, destination, to_byte); }
};

void merge(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.key() < b.key(); });
  std::vector<Range> out;
  for (const Range& range : ranges) {
    bool continues = !out.empty() && out.back().from == range.from && out.back().to == range.to &&
                     out.back().source == range.source &&
                     out.back().destination == range.destination &&
                     out.back().to_byte + out.back().bytes == range.to_byte &&
                     out.back().from_byte + out.back().bytes == range.from_byte;
    if (continues)
      out.back().bytes += range.bytes;
    else
      out.push_back(range);
  }
  ranges = std::move(out);
}

std::string count_text(const std::vector<Range>& ranges) {
  std::set<std::pair<Rank, Rank>> pairs;
  std::int64_t total = 0, least = ranges.empty() ? 0 : ranges.front().bytes;
  for (const Range& range : ranges) {
    pairs.emplace(range.from, range.to);
    total += range.bytes;
    least = std::min(least, range.bytes);
  }
  auto count = static_cast<std::int64_t>(ranges.size());
  return fmt::format("reshard: {} between {}, {}, the shortest {}\n", counted(count, "range"),
                     counted(std::ssize(pairs), "pair") + " of ranks", bytes_text(total),
                     bytes_text(least));
}

std::string head_of(const ExportInput& input) {
  return input.stored == nullptr ? check_head(input.plan) : "";
}

// Bytes are not converted.
void refuse_conversion(const Stored& side) {
  for (const StoredBuffer& buffer : side.buffers())
    if (buffer.converts)
      throw InputError(fmt::format(
          "--emit descriptors: expected buffers as they travel, found {} of rank {}, which is "
          "converted (--emit copies writes boxes)",
          quoted(buffer.name, 200), to_int(buffer.rank)));
}

}  // namespace

Exported export_copies(const ExportInput& input) {
  BufferPlaces places(input);
  Exported out{head_of(input)};
  for_each_direct_move(input.plan, "copies", [&](Rank from, Rank to, const Move& move) {
    std::string name = quoted_json(places.name_of(input.plan.buffer(move.source).tensor()));
    for (const MovePiece& piece : places.pieces_of(from, to, move))
      fmt::format_to(std::back_inserter(out.text),
                     R"({{"from": {{"rank": {}, "tensor": {}, "box": "{}"}}, )"
                     R"("to": {{"rank": {}, "buffer": {}, "offset": {}, "extents": [{}], )"
                     R"("strides": [{}]}}}})"
                     "\n",
                     to_int(from), name, slices_text(piece.box), to_int(to),
                     quoted_json(piece.destination_buffer), piece.destination.offset,
                     text(piece.destination.extents), text(piece.destination.strides));
  });
  return out;
}

Exported export_descriptors(const ExportInput& input) {
  if (input.stored != nullptr)
    for (const Stored* side : {&input.stored->source(), &input.stored->destination()})
      refuse_conversion(*side);
  BufferPlaces places(input);
  std::vector<Range> ranges;
  for_each_direct_move(input.plan, "descriptors", [&](Rank from, Rank to, const Move& move) {
    for (const MovePiece& piece : places.pieces_of(from, to, move))
      for_each_run(piece.source, piece.destination,
                   [&](std::int64_t read, std::int64_t written, std::int64_t count) {
                     if (ranges.size() == kMostRanges)
                       throw InputError(
                           "--emit descriptors: expected at most 2^24 ranges of bytes, "
                           "found more (--emit copies writes boxes)");
                     std::int64_t width = piece.element_bytes;
                     ranges.push_back({from, to, piece.source_buffer, piece.destination_buffer,
                                       written * width, read * width, count * width});
                   });
  });
  merge(ranges);
  Exported out{head_of(input), count_text(ranges)};
  for (const Range& range : ranges)
    fmt::format_to(std::back_inserter(out.text),
                   R"({{"from": {{"rank": {}, "buffer": {}, "byte": {}}}, )"
                   R"("to": {{"rank": {}, "buffer": {}, "byte": {}}}, "bytes": {}}})"
                   "\n",
                   to_int(range.from), quoted_json(range.source), range.from_byte, to_int(range.to),
                   quoted_json(range.destination), range.to_byte, range.bytes);
  return out;
}

}  // namespace reshard::sim
