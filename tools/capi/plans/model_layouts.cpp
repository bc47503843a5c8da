// SPDX-License-Identifier: BSD-3-Clause
// The C API: how frameworks spread a model over ranks, as a file of layouts.
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "core/base/printable.h"
#include "sim/models/transfer.h"
#include "sim/models/weights/config.h"
#include "tools/capi/guard.h"

using namespace reshard;
using namespace reshard::capi;

namespace {

// As of a file that the program reads.
constexpr std::int64_t kConfigBytes = std::int64_t{1} << 24;

sim::Model model_of(const reshard_model_texts& texts) {
  given(texts.config, "config");
  if (texts.config_bytes < 0 || texts.config_bytes > kConfigBytes)
    throw InputError(
        fmt::format("config_bytes: expected 0 to {}, found {}", kConfigBytes, texts.config_bytes));
  std::string name =
      texts.config_name == nullptr ? "config" : shown_path(std::string_view(texts.config_name));
  return sim::parse_config({texts.config, static_cast<std::size_t>(texts.config_bytes)}, name);
}

sim::ModelTransfer transfer_of(const reshard_model_texts& texts) {
  sim::ModelTransfer out;
  out.fields = {"from", "to", "ranks", "to_ranks", "dtype"};
  out.from.parallelism = &given(texts.from, "from");
  out.from.ranks = text_of(texts.ranks);
  out.to.parallelism = &given(texts.to, "to");
  out.to.ranks = text_of(texts.to_ranks);
  out.dtype = text_of(texts.dtype);
  return out;
}

}  // namespace

extern "C" {

int32_t reshard_model_write_layouts(const reshard_model_texts* texts, char** layouts,
                                    int64_t* layouts_bytes, char** notes, int64_t* notes_bytes) {
  return guarded([&] {
    reshard_model_texts t = taken(texts, "texts");
    require_zero(t.reserved, "texts.reserved");
    given(layouts, "layouts");
    given(layouts_bytes, "layouts_bytes");
    given(notes, "notes");
    given(notes_bytes, "notes_bytes");
    sim::TransferText written = sim::transfer_text(model_of(t), transfer_of(t));
    std::string lines;
    for (const std::string& note : written.notes) lines += note + '\n';
    char* text = nullptr;
    give_text(written.lines, &text, layouts_bytes);
    // Both or neither.
    std::unique_ptr<char, void (*)(char*)> owner(text, reshard_text_free);
    give_text(lines, notes, notes_bytes);
    *layouts = owner.release();
  });
}
}
