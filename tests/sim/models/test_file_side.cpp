// SPDX-License-Identifier: BSD-3-Clause
// Tensors of checkpoints as files name and join them, against what the frameworks' own lines say of
// the same parameters.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <string>

#include "core/base/errors.h"
#include "core/stored/view.h"
#include "sim/check/check_file.h"
#include "sim/models/file_side.h"
#include "sim/models/frameworks/parameters.h"
#include "sim/models/weights/config.h"
#include "sim/models/weights/file_names.h"
#include "sim/trace/line_reader.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

Model small(const std::string& family) {
  return parse_config(fmt::format(R"({{"model_type": "{}", "num_hidden_layers": 2,
    "hidden_size": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2,
    "intermediate_size": 8, "num_experts": 3, "num_local_experts": 3, "moe_intermediate_size": 4,
    "vocab_size": 10, "torch_dtype": "bfloat16"}})",
                                  family),
                      "c");
}

// "weight[i,j]" by (buffer, element), of all ranks.
using Elements = std::map<std::string, std::map<std::int64_t, std::string>>;

Elements elements_of(const std::string& lines, bool with_rank) {
  std::istringstream in(lines);
  LineReader reader(in, "l");
  ModelLayouts layouts = read_sides(reader, "l");
  Elements out;
  for (const StoredBuffer& buffer : layouts.source->buffers()) {
    std::string key = with_rank ? fmt::format("{} {}", to_int(buffer.rank), buffer.name)
                                : std::string(buffer.name);
    for (const StoredPart& part : buffer.parts) {
      DimVector at(part.box.dims(), 0);
      do {
        std::int64_t place = part.offset;
        DimVector index = part.box.lo;
        for (int d = 0; d < at.size(); ++d) {
          place += at[d] * part.strides[d];
          index[d] += at[d];
        }
        out[key][place] = fmt::format("{}[{}]", (*layouts.tensors)[part.tensor].name, text(index));
      } while (next_index(at, [&](int d) { return part.box.extent(d); }));
    }
  }
  return out;
}

// The model's lines of one rank that has all, named as in memory or as in files.
Elements whole(const Model& model, ExpertForm form) {
  TransferText text =
      transfer_text(model, {{form == ExpertForm::InMemory ? "fsdp2" : "whole"}, {"whole"}});
  return elements_of(text.lines, false);
}

// Each tensor in chunks of at most 3 x 2 x 2 .., dealt to two ranks.
DcpMetadata chunks_of(const Model& model, ExpertForm form, const std::string& prefix) {
  FileNames names(model);
  DcpMetadata out;
  for (const auto& [name, elements] : whole(model, form)) {
    DcpTensor tensor;
    Shape shape = names.shape_of(*names.find(name));
    tensor.tensor = {prefix + name, shape, DType::BF16};
    DimVector count(shape.size());
    for (int d = 0; d < shape.size(); ++d) count[d] = (shape[d] + 2 - (d > 0)) / (3 - (d > 0));
    DimVector at(shape.size(), 0);
    do {
      DcpChunk chunk{box_of(shape), Rank{static_cast<std::int32_t>(tensor.chunks.size() % 2)}, "f"};
      for (int d = 0; d < shape.size(); ++d) {
        const std::int64_t each = 3 - (d > 0);
        chunk.box.lo[d] = at[d] * each;
        chunk.box.hi[d] = std::min(shape[d], chunk.box.lo[d] + each);
      }
      tensor.chunks.push_back(chunk);
    } while (next_index(at, [&](int d) { return count[d]; }));
    out.tensors.push_back(std::move(tensor));
  }
  return out;
}

void check_chunks(const std::string& family, ExpertForm form) {
  INFO(family << (form == ExpertForm::InMemory ? " in memory" : " in files"));
  Model model = small(family);
  DcpMetadata metadata = chunks_of(model, form, "app.");
  metadata.left_out = {"step"};
  ModelTransfer transfer{{}, {"whole"}};
  transfer.from.given = dcp_side(model, metadata, "ck");
  CHECK(transfer.from.given->notes ==
        std::vector<std::string>{"ck: left out 1 name: no weights of " + family});
  Elements found = elements_of(transfer_text(model, transfer).lines, true);
  Elements expected;
  for (const auto& [name, elements] : whole(model, form)) {
    const DcpTensor* tensor = nullptr;
    for (const DcpTensor& each : metadata.tensors)
      if (each.tensor.name == "app." + name) tensor = &each;
    std::map<Rank, int> counts;
    for (const DcpChunk& chunk : tensor->chunks) {
      int number = ++counts[chunk.rank];
      std::string key = fmt::format("{} {}{}", to_int(chunk.rank), name,
                                    number == 1 ? "" : fmt::format("#{}", number));
      const DimVector whole_strides = row_major(tensor->tensor.shape),
                      own = row_major(chunk.box.extents());
      DimVector at(chunk.box.dims(), 0);
      do {
        std::int64_t from = 0, to = 0;
        for (int d = 0; d < at.size(); ++d) {
          from += (chunk.box.lo[d] + at[d]) * whole_strides[d];
          to += at[d] * own[d];
        }
        expected[key][to] = elements.at(from);
      } while (next_index(at, [&](int d) { return chunk.box.extent(d); }));
    }
  }
  CHECK(found == expected);
}

}  // namespace

TEST_CASE("Chunks of checkpoints are the weights that they are parts of") {
  for (ExpertForm form : {ExpertForm::InMemory, ExpertForm::InFiles})
    for (const char* family : {"llama", "qwen3_moe", "gpt_oss", "phi3", "mixtral"})
      check_chunks(family, form);
}

TEST_CASE("A checkpoint that lacks a weight, or has it in another dtype, is refused") {
  Model model = small("llama");
  DcpMetadata metadata = chunks_of(model, ExpertForm::InFiles, "");
  DcpMetadata other = metadata;
  other.tensors[1].tensor.dtype = DType::F32;
  CHECK_THROWS_WITH(dcp_side(model, other, "ck"),
                    Catch::EndsWith("as c says, found f32; --dtype f32 moves it as it is"));
  metadata.tensors.pop_back();
  CHECK_THROWS_WITH(dcp_side(model, metadata, "ck"), Catch::StartsWith("ck: expected all of "));
  metadata.tensors.clear();
  CHECK_THROWS_WITH(
      dcp_side(model, metadata, "ck"),
      "ck: expected a tensor model.embed_tokens.weight, perhaps with a prefix, found none");
}
