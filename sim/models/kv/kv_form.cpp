// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/kv/kv_form.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"

namespace reshard::sim {
namespace {

constexpr std::pair<std::string_view, KvDim> kWords[] = {
    {"layers", KvDim::Layers}, {"kv", KvDim::Kv},         {"blocks", KvDim::Blocks},
    {"heads", KvDim::Heads},   {"tokens", KvDim::Tokens}, {"dim", KvDim::Channels}};

// A latent cache has the same form without kv and heads.
constexpr std::pair<std::string_view, std::string_view> kForms[] = {
    {"vllm", "kv,blocks,tokens,heads,dim"},
    {"flashinfer", "blocks,kv,tokens,heads,dim"},
    {"sglang", "blocks,tokens,heads,dim"},
    {"trtllm", "blocks,layers,kv,heads,tokens,dim"}};

std::vector<KvDim> read_dims(std::string_view text, std::string_view field) {
  std::vector<KvDim> out;
  Cursor cursor(text, field);
  do {
    std::string_view word = cursor.word();
    auto known = std::find_if(std::begin(kWords), std::end(kWords),
                              [&](const auto& row) { return row.first == word; });
    if (known == std::end(kWords))
      throw InputError(fmt::format("{}: expected a form ({}) or dims such as {}, found {}", field,
                                   known_kv_forms(), kForms[0].second, reshard::quoted(text)));
    if (std::find(out.begin(), out.end(), known->second) != out.end())
      throw InputError(fmt::format("{}: expected each dim once, found {} twice", field, word));
    out.push_back(known->second);
  } while (cursor.accept(","));
  cursor.expect_end();
  return out;
}

}  // namespace

bool KvForm::has(KvDim dim) const { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

KvForm parse_kv_form(std::string_view text, std::string_view field, const KvModel& model) {
  auto per_head = [](KvDim dim) { return dim == KvDim::Kv || dim == KvDim::Heads; };
  KvForm out{std::string(text), {}};
  for (auto [name, dims] : kForms) {
    if (name != text) continue;
    out.dims = read_dims(dims, field);
    if (model.is_latent())
      out.dims.erase(std::remove_if(out.dims.begin(), out.dims.end(), per_head), out.dims.end());
  }
  if (out.dims.empty()) out.dims = read_dims(text, field);
  if (model.is_latent() && std::any_of(out.dims.begin(), out.dims.end(), per_head))
    throw InputError(
        fmt::format("{}: expected neither kv nor heads, as a latent cache has none, found {}",
                    field, reshard::quoted(text)));
  for (auto [word, dim] : kWords) {
    bool needed = dim == KvDim::Blocks || dim == KvDim::Tokens || dim == KvDim::Channels ||
                  (dim == KvDim::Heads && !model.is_latent());
    if (needed && !out.has(dim))
      throw InputError(
          fmt::format("{}: expected a dim {}, found {}", field, word, reshard::quoted(text)));
  }
  if (out.has(KvDim::Kv) && model.key_dim != model.value_dim)
    throw InputError(
        fmt::format("{}: expected arrays of their own for keys of {} channels and values of "
                    "{} (no kv), found {}",
                    field, model.key_dim, model.value_dim, reshard::quoted(text)));
  return out;
}

std::string known_kv_forms() {
  std::string out;
  for (auto [name, dims] : kForms)
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", name, dims);
  return out;
}

}  // namespace reshard::sim
