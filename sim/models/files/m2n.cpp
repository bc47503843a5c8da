// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/files/m2n.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/limits.h"
#include "core/base/printable.h"
#include "sim/inputs/json_reader.h"
#include "sim/models/files/m2n_model.h"
#include "sim/report/json.h"
#include "sim/trace/line_reader.h"
#include "sim/weights/mapped_file.h"

namespace reshard::sim {
namespace {

constexpr JsonLimits kSystemLimits{8, 4096, 256};

struct Parallelism {
  std::int64_t gpus = 0, tp = 1, cp = 1, ep = 1, dp = 1, pp = 1;
  std::int64_t stage() const { return gpus / pp; }
};

// The axes of the ranks of one stage, outermost first.
struct Grid {
  struct Axis {
    std::string_view name;
    std::int64_t size;
  };
  std::vector<Axis> axes;  // only axes of more than one rank

  Grid(std::initializer_list<Axis> all) {
    for (const Axis& axis : all)
      if (axis.size > 1) axes.push_back(axis);
  }
  std::int64_t size(std::string_view name) const {
    for (const Axis& axis : axes)
      if (axis.name == name) return axis.size;
    return 1;
  }
  // "dp=2,tp=4"
  std::string mesh() const {
    std::string out;
    for (const Axis& axis : axes)
      out += fmt::format("{}{}={}", out.empty() ? "" : ",", axis.name, axis.size);
    return out.empty() ? "1" : out;
  }
};

// The axis that cuts a tensor and the dim that it cuts. Without an axis, every rank of the stage
// has the whole tensor.
struct Cut {
  std::string_view axis;
  int dim;
};

std::optional<Cut> cut_of(const ForeignTensor& tensor, const Grid& grid) {
  if (tensor.shape.size() < 2) return std::nullopt;
  if (is_expert(tensor.name) && grid.size("ep") > 1) return Cut{"ep", 0};
  auto dim = cut_dim(tensor.name);
  if (!dim || grid.size("tp") == 1) return std::nullopt;
  return Cut{"tp", is_expert(tensor.name) ? *dim + 1 : *dim};
}

bool divides(const ForeignTensor& tensor, const Grid& grid) {
  auto cut = cut_of(tensor, grid);
  return !cut ||
         (cut->dim < tensor.shape.size() && tensor.shape[cut->dim] % grid.size(cut->axis) == 0);
}

// One side: its ranks from `first` on, stage by stage.
struct Side {
  std::string_view name;  // "from" or "to"
  Parallelism sizes;
  std::int64_t first;
  Grid dense, experts;

  const Grid& grid(const ForeignTensor& tensor) const {
    return is_expert(tensor.name) ? experts : dense;
  }
  std::int64_t stage_of(const ForeignTensor& tensor, std::int64_t layers) const {
    if (auto layer = layer_of(tensor.name)) return *layer * sizes.pp / layers;
    bool is_first = tensor.name.find("embed_tokens") != std::string::npos;
    return is_first ? 0 : sizes.pp - 1;
  }
  std::string line(const ForeignTensor& tensor, std::int64_t layers) const {
    const Grid& of = grid(tensor);
    auto cut = cut_of(tensor, of);
    std::string placements;
    for (const Grid::Axis& axis : of.axes)
      placements += cut && cut->axis == axis.name ? fmt::format("S({})", cut->dim) : "R";
    std::int64_t begin = first + stage_of(tensor, layers) * sizes.stage();
    std::int64_t last = begin + sizes.stage() - 1;
    return fmt::format(
        R"({{"side": "{}", "tensor": {}, "mesh": "{}", "ranks": "{}", "placements": "{}"}})"
        "\n",
        name, json_text(tensor.name), of.mesh(),
        last == begin ? fmt::to_string(begin) : fmt::format("{}-{}", begin, last),
        placements.empty() ? "R" : placements);
  }
};

class SystemReader {
 public:
  explicit SystemReader(const std::string& place) : place_(place) {}

  std::pair<Side, Side> read(std::string_view text) {
    auto json = read_json<TraceJson>(text, place_, kSystemLimits);
    if (!json.is_object())
      throw InputError(fmt::format(
          "{}: expected an object such as {{\"train\": {{\"num_gpus\": 16, \"tp_size\": 2}}, "
          "\"generation\": {{\"num_gpus\": 16}}}}, found {}",
          place_, shown(json)));
    TraceFields fields(json, place_);
    Parallelism train = read_sizes(fields, "train"), generation = read_sizes(fields, "generation");
    refuse_others(json, place_, {"train", "generation"});
    if (train.gpus + generation.gpus > kMaxRanks)
      throw InputError(fmt::format("{}: num_gpus: expected at most {} together, found {}", place_,
                                   kMaxRanks, train.gpus + generation.gpus));
    return {trainers(train), generators(generation, train.gpus)};
  }

 private:
  [[noreturn]] void fail(std::string_view side, const std::string& expected,
                         std::int64_t found) const {
    throw InputError(
        fmt::format("{}: {}: num_gpus: expected {}, found {}", place_, side, expected, found));
  }

  // Fields that begin with an underscore are comments.
  static void refuse_others(const TraceJson& json, const std::string& where,
                            std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : json.items())
      if (!key.starts_with('_') && std::find(known.begin(), known.end(), key) == known.end())
        throw InputError(
            fmt::format("{}: {}: expected a field that the benchmark reads, found an "
                        "unknown one",
                        where, reshard::quoted(key)));
  }

  Parallelism read_sizes(TraceFields& fields, std::string_view key) const {
    constexpr std::string_view kWhat = "an object with num_gpus, tp_size and others";
    const TraceJson& json = fields.required(key, kWhat);
    if (!json.is_object()) fields.fail(key, kWhat, json);
    const std::string where = fmt::format("{}: {}", place_, key);
    TraceFields sizes(json, where);
    auto size = [&](std::string_view field) { return sizes.integer(field, 1, kMaxRanks, 1); };
    Parallelism out;
    out.gpus = sizes.integer("num_gpus", 1, kMaxRanks);
    out.tp = size("tp_size");
    out.cp = size("cp_size");
    out.ep = size("ep_size");
    out.dp = size("dp_size");
    out.pp = size("pp_size");
    refuse_others(json, where,
                  {"num_gpus", "tp_size", "cp_size", "ep_size", "dp_size", "pp_size", "fsdp_size"});
    if (out.gpus % out.pp != 0)
      fail(key, fmt::format("a multiple of pp_size {}", out.pp), out.gpus);
    return out;
  }

  // The two grids cover the same ranks; dp_size gives neither.
  Side trainers(const Parallelism& sizes) const {
    if (sizes.stage() % (sizes.tp * sizes.cp) != 0)
      fail("train",
           fmt::format("a multiple of pp_size x tp_size x cp_size = {} x {} x {}", sizes.pp,
                       sizes.tp, sizes.cp),
           sizes.gpus);
    if (sizes.stage() % sizes.ep != 0)
      fail("train", fmt::format("a multiple of pp_size x ep_size = {} x {}", sizes.pp, sizes.ep),
           sizes.gpus);
    Grid dense{{"dp", sizes.stage() / (sizes.tp * sizes.cp)}, {"cp", sizes.cp}, {"tp", sizes.tp}};
    Grid experts{{"edp", sizes.stage() / sizes.ep}, {"ep", sizes.ep}};
    return {"from", sizes, 0, std::move(dense), std::move(experts)};
  }

  Side generators(const Parallelism& sizes, std::int64_t first) const {
    Int128 product = sizes.pp;
    for (std::int64_t size : {sizes.dp, sizes.ep, sizes.cp, sizes.tp}) product *= size;
    if (product != sizes.gpus)
      fail("generation",
           fmt::format("pp_size x dp_size x ep_size x cp_size x tp_size = {} x {} x {} x {} x {}",
                       sizes.pp, sizes.dp, sizes.ep, sizes.cp, sizes.tp),
           sizes.gpus);
    Grid grid{{"dp", sizes.dp}, {"ep", sizes.ep}, {"cp", sizes.cp}, {"tp", sizes.tp}};
    return {"to", sizes, first, grid, grid};
  }

  const std::string& place_;
};

void note(const std::vector<std::string>& names, std::string_view what, ForeignLayouts& to) {
  if (names.empty()) return;
  to.notes.push_back(fmt::format("{} {} {}, such as {}", names.size(),
                                 names.size() == 1 ? "tensor is" : "tensors are", what,
                                 reshard::quoted(names.front(), 200)));
}

}  // namespace

ForeignLayouts parse_m2n(std::string_view model, const std::string& model_place,
                         std::string_view system, const std::string& system_place) {
  const auto sides = SystemReader(system_place).read(system);
  const Side &from = sides.first, &to = sides.second;
  M2nModel read = parse_m2n_model(model, model_place);
  ForeignLayouts out;
  std::vector<std::string> uneven;
  std::string destination;
  for (ForeignTensor& tensor : read.tensors) {
    if (!divides(tensor, from.grid(tensor)) || !divides(tensor, to.grid(tensor))) {
      uneven.push_back(tensor.name);
      continue;
    }
    out.buffers += from.line(tensor, read.layers);
    destination += to.line(tensor, read.layers);
    out.tensors.push_back(std::move(tensor));
  }
  out.buffers += destination;
  out.end_rank = from.sizes.gpus + to.sizes.gpus;
  note(read.left_out, "of more than 3 dims and left out", out);
  note(uneven, "not divisible and left out", out);
  note(read.as_bf16, "of a dtype that the benchmark counts as bf16", out);
  if (to.sizes.ep > 1 && to.sizes.tp * to.sizes.cp > 1)
    out.notes.push_back(
        "experts of the generators lie by the grid of the file; the benchmark hands its library "
        "one in which ep is innermost");
  return out;
}

ForeignLayouts read_m2n(const std::string& model_path, const std::string& system_path) {
  MappedFile model(model_path, "a model file of NVIDIA's reshard_model_bench"),
      system(system_path, "a system file of NVIDIA's reshard_model_bench");
  auto text_of = [](const MappedFile& file) {
    return after_byte_order_mark(
        {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  };
  return parse_m2n(text_of(model), shown_path(model_path), text_of(system),
                   shown_path(system_path));
}

}  // namespace reshard::sim
