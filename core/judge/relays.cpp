// SPDX-License-Identifier: BSD-3-Clause
#include "core/judge/relays.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {

void Relays::add(RelayBuffer buffer) {
  if (find(buffer.rank, buffer.name) >= 0)
    throw InputError(fmt::format("buffer: expected each name once on rank {}, found {} again",
                                 to_int(buffer.rank), buffer.name));
  by_name_.emplace(std::pair(buffer.rank, buffer.name), static_cast<int>(buffers_.size()));
  buffers_.push_back(std::move(buffer));
  pieces_.emplace_back();
}

int Relays::find(Rank rank, std::string_view name) const {
  auto found = by_name_.find(std::pair(rank, std::string(name)));
  return found == by_name_.end() ? -1 : found->second;
}

// Calls visit(element of the buffer, count) for the positions of a view, in contiguous pieces.
template <class Visit>
void Relays::for_each_piece(const StridedView& view, std::int64_t position, std::int64_t count,
                            Visit&& visit) {
  std::int64_t run = 1;  // every piece begins at a multiple of this
  for (int d = view.dims() - 1; d >= 0; --d) {
    if (view.extents[d] == 1) continue;
    if (view.strides[d] != run) break;
    run *= view.extents[d];
  }
  for (std::int64_t end = position + count; position < end;) {
    std::int64_t next = std::min(end, (position / run + 1) * run), at = view.offset;
    DimVector index = index_at(position, view.extents);
    for (int d = 0; d < index.size(); ++d) at += index[d] * view.strides[d];
    if (--budget_ < 0)
      throw InputError("expected relays in few contiguous pieces, found more than 2^23");
    visit(at, next - position);
    position = next;
  }
}

// Splits the run that `at` is within, if there is one, into two.
void Relays::split(WrittenRuns& pieces, std::int64_t at) {
  auto found = pieces.upper_bound(at);
  if (found == pieces.begin()) return;
  --found;
  if (found->first == at || found->second.end <= at) return;
  WrittenRun rest = found->second;
  rest.index += at - found->first;
  found->second.end = at;
  pieces.emplace_hint(std::next(found), at, std::move(rest));
}

void Relays::overwrite(WrittenRuns& pieces, std::int64_t begin, std::int64_t end, std::int64_t line,
                       CopyOrder& order, std::vector<Conflict>& out) {
  split(pieces, begin);
  split(pieces, end);
  auto first = pieces.lower_bound(begin), last = pieces.lower_bound(end);
  for (auto old = first; old != last; ++old) {
    std::int64_t count = old->second.end - old->first;
    const WrittenRun& was = old->second;
    if (!order.is_before(was.line, line)) out.push_back({was.tensor, was.index, count, was.line});
    for (const Reader& reader : was.readers)
      if (!order.is_before(reader.line, line))
        out.push_back({was.tensor, was.index, count, reader.line, reader.rank});
  }
  pieces.erase(first, last);
}

// Elements of the view that are in none of the runs become unknown.
std::vector<Relays::Conflict> Relays::write(int relay, const StridedView& view,
                                            const std::vector<RelayedRun>& runs, std::int64_t line,
                                            CopyOrder& order) {
  std::vector<Conflict> out;
  WrittenRuns& pieces = pieces_[to_index(relay)];
  for_each_piece(view, 0, view.count(), [&](std::int64_t at, std::int64_t count) {
    overwrite(pieces, at, at + count, line, order, out);
  });
  for (const RelayedRun& run : runs) {
    std::int64_t index = run.index;
    for_each_piece(view, run.position, run.count, [&](std::int64_t at, std::int64_t count) {
      pieces.insert_or_assign(at, WrittenRun{at + count, run.tensor, index, line, {}});
      index += count;
    });
  }
  return out;
}

std::vector<RelayedRun> Relays::read(int relay, const StridedView& view, std::int64_t line,
                                     Rank reader, CopyOrder& order,
                                     std::vector<Conflict>& conflicts) {
  std::vector<RelayedRun> out;
  WrittenRuns& pieces = pieces_[to_index(relay)];
  std::int64_t position = 0;
  for_each_piece(view, 0, view.count(), [&](std::int64_t begin, std::int64_t count) {
    split(pieces, begin);
    split(pieces, begin + count);
    for (auto piece = pieces.lower_bound(begin);
         piece != pieces.end() && piece->first < begin + count; ++piece) {
      WrittenRun& is = piece->second;
      RelayedRun run{position + piece->first - begin, is.end - piece->first, is.tensor, is.index};
      if (!order.is_before(is.line, line))
        conflicts.push_back({is.tensor, is.index, run.count, is.line});
      is.readers.push_back({line, reader});
      bool goes_on = !out.empty() && out.back().tensor == run.tensor &&
                     out.back().position + out.back().count == run.position &&
                     out.back().index + out.back().count == run.index;
      if (goes_on)
        out.back().count += run.count;
      else
        out.push_back(run);
    }
    position += count;
  });
  return out;
}

}  // namespace reshard
