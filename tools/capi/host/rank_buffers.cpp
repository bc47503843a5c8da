// SPDX-License-Identifier: BSD-3-Clause
// The C API: the buffers of a model's ranks, and a rank's shards in them.
#include <map>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/stored/rank_shards.h"
#include "sim/check/check_file.h"
#include "tools/capi/guard.h"
#include "tools/capi/handles.h"
#include "tools/capi/host/lent_memory.h"

using namespace reshard;
using namespace reshard::capi;

struct reshard_rank_buffers {
  std::shared_ptr<const sim::ModelLayouts> layouts;
  std::map<std::pair<bool, StoredBufferId>, std::byte*> memory;  // by whether it is a source's
  std::optional<RankShards> shards;
};

namespace {

const Stored& side_of(const sim::ModelLayouts& layouts, std::int32_t side) {
  if (side != RESHARD_FROM && side != RESHARD_TO)
    throw InputError(fmt::format("side: expected 0 (from) or 1 (to), found {}", side));
  return side == RESHARD_FROM ? *layouts.source : *layouts.destination;
}

// Throws InputError unless the caller's memory is that of the rank's buffers of one side.
class LentBuffers {
 public:
  LentBuffers(reshard_rank_buffers& out, Rank rank) : out_(out), rank_(rank) {}

  void add(const char* which, std::int32_t number, const reshard_lent_buffer* first,
           std::int32_t count) {
    const Stored& side = side_of(*out_.layouts, number);
    if (count < 0)
      throw InputError(fmt::format("{}_count: expected 0 or more, found {}", which, count));
    for (std::size_t i = 0; i < to_index(count); ++i)
      add(which, side, taken_at(first, i, which), number == RESHARD_TO);
    for (std::size_t b = 0; b < side.buffers().size(); ++b) {
      auto id = id_of<StoredBufferId>(b);
      const StoredBuffer& buffer = side.buffers()[id];
      if (buffer.rank == rank_ && !out_.memory.contains({number == RESHARD_FROM, id}))
        throw InputError(fmt::format("{}: expected the buffer {} of rank {}, found none", which,
                                     reshard::quoted(buffer.name, 200), to_int(rank_)));
    }
  }

  // What is written lies apart from the rest.
  void check_apart() const { require_apart(all_); }

 private:
  void add(const char* which, const Stored& side, const reshard_lent_buffer& lent, bool written) {
    std::string name = &given(lent.name, fmt::format("{}.name", which));
    std::optional<StoredBufferId> id = side.find(rank_, name);
    std::string what = fmt::format("{}: buffer {}", which, reshard::quoted(name, 200));
    if (!id)
      throw InputError(fmt::format("{}: expected one that rank {} has", what, to_int(rank_)));
    const StoredBuffer& buffer = side.buffers()[*id];
    if (lent.bytes != buffer.bytes())
      throw InputError(
          fmt::format("{}: expected {} bytes, found {}", what, buffer.bytes(), lent.bytes));
    auto* data = static_cast<std::byte*>(lent.data);
    if (!out_.memory.try_emplace({&side == out_.layouts->source.get(), *id}, data).second)
      throw InputError(fmt::format("{}: expected it once, found it twice", what));
    if (lent.bytes == 0) return;
    all_.push_back({.name = which, .data = data, .bytes = lent.bytes, .written = written});
    require_usable(all_.back(), size_bytes(buffer.dtype));
  }

  reshard_rank_buffers& out_;
  Rank rank_;
  std::vector<LentMemory> all_;
};

}  // namespace

extern "C" {

int32_t reshard_plan_get_stored_count(const reshard_plan* plan, int32_t side, int32_t* count) {
  return guarded([&] {
    const auto& layouts = given(plan, "plan").layouts;
    given(count, "count");
    std::size_t buffers = layouts ? side_of(*layouts, side).buffers().size() : 0;
    *count = static_cast<std::int32_t>(buffers);
  });
}

int32_t reshard_plan_get_stored_buffer(const reshard_plan* plan, int32_t side, int32_t buffer,
                                       reshard_stored_buffer* result) {
  return guarded([&] {
    const auto& layouts = given(plan, "plan").layouts;
    if (!layouts) throw InputError("plan: expected one of layouts, found one without buffers");
    const Stored& of = side_of(*layouts, side);
    std::size_t index = checked_index(buffer, of.buffers().size(), "buffer");
    const StoredBuffer& from = of.buffers()[id_of<StoredBufferId>(index)];
    reshard_stored_buffer out{};
    out.rank = to_int(from.rank);
    out.name = from.name.data();  // of a std::string, with its NUL
    out.dtype = text(from.dtype).data();
    out.dims = from.shape.size();
    for (int d = 0; d < out.dims; ++d) out.shape[d] = from.shape[d];
    out.bytes = from.bytes();
    give(out, result, "result");
  });
}

int32_t reshard_rank_buffers_create(const reshard_plan* plan, int32_t rank,
                                    const reshard_lent_buffer* from, int32_t from_count,
                                    const reshard_lent_buffer* to, int32_t to_count,
                                    reshard_rank_buffers** buffers) {
  return guarded([&] {
    const reshard_plan& handle = given(plan, "plan");
    given(buffers, "buffers");
    if (!handle.layouts)
      throw InputError("plan: expected one of layouts, found one without buffers");
    slot_of(*handle.plan, rank);  // refuses a rank that the plan does not have
    auto out = std::make_unique<reshard_rank_buffers>();
    out->layouts = handle.layouts;
    LentBuffers lent(*out, Rank{rank});
    lent.add("from", RESHARD_FROM, from, from_count);
    lent.add("to", RESHARD_TO, to, to_count);
    lent.check_apart();
    out->shards.emplace(*out->layouts->requests, Rank{rank},
                        [&](const Stored& side, StoredBufferId id) {
                          return out->memory.at({&side == out->layouts->source.get(), id});
                        });
    *buffers = out.release();
  });
}

void reshard_rank_buffers_free(reshard_rank_buffers* buffers) { delete buffers; }

int32_t reshard_rank_buffers_get_shards(const reshard_rank_buffers* buffers, reshard_shards* shards,
                                        int32_t count) {
  return guarded([&] {
    const RankShards& mine = *given(buffers, "buffers").shards;
    std::size_t expected = buffers->layouts->requests->requests().size();
    if (count < 0 || to_index(count) != expected)
      throw InputError(
          fmt::format("count: expected {}, one for each tensor, found {}", expected, count));
    std::uint32_t size = given(shards, "shards").struct_size;
    for (std::size_t t = 0; t < expected; ++t) {
      auto* at = reinterpret_cast<reshard_shards*>(reinterpret_cast<char*>(shards) + t * size);
      if (at->struct_size != size)
        throw InputError(
            fmt::format("shards: expected the same struct_size in all, found {}", at->struct_size));
      reshard_shards out{};
      std::span<const std::byte> source = mine.source(id_of<TensorId>(t));
      std::span<std::byte> destination = mine.destination(id_of<TensorId>(t));
      out.source = source.data();
      out.source_bytes = static_cast<std::int64_t>(source.size());
      out.destination = destination.data();
      out.destination_bytes = static_cast<std::int64_t>(destination.size());
      give(out, at, "shards");
    }
  });
}

int32_t reshard_rank_buffers_get_staged_bytes(const reshard_rank_buffers* buffers, int64_t* bytes) {
  return guarded([&] {
    std::int64_t staged = given(buffers, "buffers").shards->staged_bytes();
    given(bytes, "bytes");
    *bytes = staged;
  });
}

int32_t reshard_rank_buffers_gather(const reshard_rank_buffers* buffers) {
  return guarded([&] { given(buffers, "buffers").shards->gather(); });
}

int32_t reshard_rank_buffers_scatter(const reshard_rank_buffers* buffers) {
  return guarded([&] { given(buffers, "buffers").shards->scatter(); });
}

}  // extern "C"
