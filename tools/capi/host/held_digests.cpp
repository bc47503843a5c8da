// SPDX-License-Identifier: BSD-3-Clause
// The C API: digests of what a rank holds in its caller's memory, and those of all ranks
// together.
#include <fmt/core.h>

#include "core/base/cursor.h"
#include "sim/check/check_file.h"
#include "sim/digest/digest_file.h"
#include "tools/capi/guard.h"

using namespace reshard;
using namespace reshard::capi;

namespace {

sim::DigestSide side_of(const std::string& text) {
  for (sim::DigestSide side : sim::kDigestSides)
    if (sim::text(side) == text) return side;
  throw InputError(fmt::format("side: expected from or to, found {}", reshard::quoted(text)));
}

std::vector<sim::HeldBuffer> held_in(const reshard_held_buffer* first, std::int32_t count) {
  std::vector<sim::HeldBuffer> out;
  for (std::size_t i = 0; i < to_index(count); ++i) {
    reshard_held_buffer mine = taken_at(first, i, "buffers");
    std::string name = &given(mine.name, "buffers.name");
    if (mine.bytes < 0 || (mine.bytes > 0 && mine.data == nullptr))
      throw InputError(fmt::format("buffer {}: expected memory of {} bytes, found NULL",
                                   reshard::quoted(name, 200), mine.bytes));
    out.push_back({name, {static_cast<const std::byte*>(mine.data), to_index(mine.bytes)}});
  }
  return out;
}

}  // namespace

extern "C" {

int32_t reshard_digest_buffers(const char* layouts, const char* side, int32_t rank, int64_t rows,
                               const reshard_held_buffer* buffers, int32_t count, char** text,
                               int64_t* text_bytes) {
  return guarded([&] {
    std::string path = &given(layouts, "layouts");
    sim::DigestSide of = side_of(&given(side, "side"));
    given(text, "text");
    given(text_bytes, "text_bytes");
    if (count < 0) throw InputError("count: expected 0 or more, found " + std::to_string(count));
    if (rank < 0) throw InputError("rank: expected 0 or more, found " + std::to_string(rank));
    if (rows < 0) throw InputError("rows: expected 0 or more, found " + std::to_string(rows));
    std::vector<sim::HeldBuffer> held = held_in(buffers, count);
    sim::ModelLayouts model = sim::read_sides(path);
    sim::Digests digests = sim::digests_of_buffers(model, of, Rank{rank}, held, rows);
    give_text(sim::write_digest_file(sim::file_of(digests, model)), text, text_bytes);
  });
}

int32_t reshard_digest_gather(const char* const* texts, int32_t count, char** text,
                              int64_t* text_bytes) {
  return guarded([&] {
    given(text, "text");
    given(text_bytes, "text_bytes");
    if (count < 1) throw InputError("count: expected 1 or more, found " + std::to_string(count));
    std::vector<sim::DigestFile> files;
    for (int32_t i = 0; i < count; ++i)
      files.push_back(sim::read_digest_file(&given((&given(texts, "texts"))[i], "texts"),
                                            fmt::format("digests {}", i)));
    give_text(sim::write_digest_file(sim::gathered(files)), text, text_bytes);
  });
}
}
