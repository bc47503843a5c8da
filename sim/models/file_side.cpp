// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/file_side.h"

#include <map>
#include <set>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/models/weights/file_names.h"
#include "sim/report/json.h"

namespace reshard::sim {
namespace {

// The prefix that all names have: "" or "model.", depending on how the application nests its state.
std::string prefix_in(const DcpMetadata& metadata, const Model& model, const std::string& place) {
  const std::string& known = model.embedding.weights.front().name;
  std::set<std::string> found;
  for (const DcpTensor& of : metadata.tensors)
    if (of.tensor.name.ends_with(known))
      found.insert(of.tensor.name.substr(0, of.tensor.name.size() - known.size()));
  if (found.empty())
    throw InputError(
        fmt::format("{}: expected a tensor {}, perhaps with a prefix, found none", place, known));
  auto shortest = found.begin();
  for (auto at = found.begin(); at != found.end(); ++at)
    if (at->size() < shortest->size()) shortest = at;
  return *shortest;
}

std::string box_text(const Box& box) {
  std::string out;
  for (int d = 0; d < box.dims(); ++d)
    out += fmt::format("{}{}:{}", d == 0 ? "" : ",", box.lo[d], box.hi[d]);
  return out;
}

// A chunk as a dense row-major buffer of its own.
Json buffer_json(const DcpChunk& chunk, const std::string& name, DType dtype,
                 const std::vector<WeightPart>& parts) {
  Json out = {{"side", "from"},
              {"buffer", name},
              {"ranks", std::to_string(to_int(chunk.rank))},
              {"shape", values_json(chunk.box.extents())},
              {"dtype", text(dtype)}};
  out["parts"] = list_json(parts, [](const WeightPart& part) -> Json {
    return {{"tensor", part.weight->name},
            {"box", box_text(part.box)},
            {"offset", part.offset},
            {"strides", values_json(part.strides)}};
  });
  return out;
}

TransferText text_of(const ForeignLayouts& layouts, std::string lines, std::string what) {
  TransferText out;
  out.model = std::move(what);
  out.lines = std::move(lines);
  out.notes = layouts.notes;
  return out;
}

std::string dtypes_of(const std::vector<ForeignTensor>& tensors) {
  std::map<DType, std::int64_t> counts;
  for (const ForeignTensor& tensor : tensors) ++counts[tensor.dtype];
  std::string out;
  for (auto [dtype, count] : counts)
    out += fmt::format("{}{}", out.empty() ? "" : " and ", text(dtype));
  return out;
}

}  // namespace

GivenSide dcp_side(const Model& model, const DcpMetadata& metadata, const std::string& place) {
  const FileNames names(model);
  const std::string prefix = prefix_in(metadata, model, place);
  GivenSide out;
  std::vector<FileTensor> used;
  std::map<std::pair<Rank, std::string>, int> counts;
  std::set<Rank> ranks;
  std::string left_out;
  std::int64_t left = std::ssize(metadata.left_out);
  for (const DcpTensor& of : metadata.tensors) {
    std::string name =
        of.tensor.name.starts_with(prefix) ? of.tensor.name.substr(prefix.size()) : std::string();
    std::optional<FileNames::Known> known = names.find(name);
    if (!known) {
      if (++left; left_out.empty()) left_out = of.tensor.name;
      continue;
    }
    used.push_back({name, of.tensor.shape});
    const DType wanted = known->parameter->weight->dtype;
    if (of.tensor.dtype != wanted)
      throw InputError(
          fmt::format("{}: {}: expected {}, as {} says, found {}; --dtype {} moves it "
                      "as it is",
                      place, of.tensor.name, text(wanted), model.file, text(of.tensor.dtype),
                      text(of.tensor.dtype)));
    if (of.tensor.shape != names.shape_of(*known)) continue;  // refused below
    for (const DcpChunk& chunk : of.chunks) {
      ranks.insert(chunk.rank);
      const int number = ++counts[{chunk.rank, name}];
      std::string buffer = number == 1 ? name : fmt::format("{}#{}", name, number);
      out.lines += buffer_json(chunk, buffer, of.tensor.dtype, names.parts_of(*known, chunk.box))
                       .dump(-1, ' ', false, Json::error_handler_t::replace) +
                   "\n";
    }
  }
  check_file(model, used, place);
  out.description =
      fmt::format("{}, saved by ranks {}", place, ranks_text({ranks.begin(), ranks.end()}));
  out.end_rank = ranks.empty() ? 0 : to_int(*ranks.rbegin()) + 1;
  if (left > 0)
    out.notes.push_back(fmt::format(
        "{}: left out {}: no weights of {}{}", place, counted(left, "name"), model.family,
        left_out.empty() ? "" : fmt::format(", such as {}", reshard::quoted(left_out, 100))));
  return out;
}

TransferText foreign_text(const ForeignLayouts& both, std::string what) {
  TransferText out = text_of(both, layouts_text(both), std::move(what));
  out.dtype = dtypes_of(both.tensors);
  return out;
}

TransferText foreign_text(const ForeignLayouts& from, const ForeignLayouts& to, std::string what) {
  TransferText out = text_of(from, layouts_text(from, to), std::move(what));
  out.dtype = dtypes_of(from.tensors);
  out.notes.insert(out.notes.end(), to.notes.begin(), to.notes.end());
  return out;
}

}  // namespace reshard::sim
