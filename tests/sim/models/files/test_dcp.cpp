// SPDX-License-Identifier: BSD-3-Clause
// Metadata of PyTorch's distributed checkpoints: real ones (data/README.md), and ones made up that
// are wrong.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "sim/check/check_file.h"
#include "sim/models/files/dcp.h"
#include "tests/sim/models/files/pickle_text.h"
#include "tests/support/prng.h"
#include "tests/support/weights_files.h"

namespace reshard::sim::dcp_tests {

using Catch::Matchers::Contains;
namespace pickled = reshard::test::pickled;
using pickled::text;

namespace {

const std::string kData = "tests/sim/models/files/data/";

std::string bytes_of(const std::string& name) {
  std::ifstream file(kData + name, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

ForeignLayouts layouts_of(const std::string& name) {
  return sim::layouts_of(read_dcp(kData + name), "from");
}

// A line of a buffer of a rank that is a box of the tensor of its name, or all of it.
std::string line(const std::string& name, int rank, const std::string& shape,
                 const std::string& dtype, const std::string& box) {
  return fmt::format(
      R"({{"side": "from", "buffer": "{0}", "ranks": "{1}", "shape": [{2}], "dtype": "{3}", )"
      R"("parts": [{{"tensor": "{0}"{4}}}]}})"
      "\n",
      name, rank, shape, dtype, box.empty() ? "" : fmt::format(R"(, "box": "{}")", box));
}

const std::string kModule = "torch.distributed.checkpoint.metadata";

std::string size(const std::vector<int>& extents) {
  std::vector<std::string> numbers;
  for (int extent : extents) numbers.push_back(pickled::number(extent));
  return pickled::made(pickled::global("torch", "Size"), {pickled::tuple(numbers)});
}

struct Chunk {
  std::vector<int> offsets, sizes;
  std::string file = "__0_0.distcp";
};

// Metadata with one tensor "w".
struct Made {
  std::vector<int> shape{4, 2};
  std::vector<Chunk> chunks{{{0, 0}, {2, 2}, "__0_0.distcp"}, {{2, 0}, {2, 2}, "__1_0.distcp"}};
  std::string dtype = "float32", name = "w";
  bool is_stored = true;                  // whether storage_data has the chunks
  std::string version = text("version");  // the name of the field
  std::string version_value = "N", type = pickled::global(kModule, "Metadata");
  pickled::Entries more = {};  // entries of state_dict_metadata

  std::string bytes() const {
    std::vector<std::string> list;
    pickled::Entries stored;
    for (const Chunk& chunk : chunks) {
      list.push_back(pickled::object(pickled::global(kModule, "ChunkStorageMetadata"),
                                     pickled::dict({{text("offsets"), size(chunk.offsets)},
                                                    {text("sizes"), size(chunk.sizes)}})));
      if (is_stored)
        stored.emplace_back(
            pickled::object(
                pickled::global(kModule, "MetadataIndex"),
                pickled::dict({{text("fqn"), text(name)}, {text("offset"), size(chunk.offsets)}})),
            pickled::object(
                pickled::global("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
                pickled::dict({{text("relative_path"), text(chunk.file)}})));
    }
    const std::string properties =
        pickled::object(pickled::global(kModule, "TensorProperties"),
                        pickled::tuple({pickled::global("torch", dtype), "N", "N", "N", "N"}));
    pickled::Entries entries{
        {text(name), pickled::object(pickled::global(kModule, "TensorStorageMetadata"),
                                     pickled::dict({{text("properties"), properties},
                                                    {text("size"), size(shape)},
                                                    {text("chunks"), pickled::list(list)}}))}};
    entries.insert(entries.end(), more.begin(), more.end());
    return pickled::pickle(
        pickled::object(type, pickled::dict({{text("state_dict_metadata"), pickled::dict(entries)},
                                             {text("planner_data"), "N"},
                                             {text("storage_data"), pickled::dict(stored)},
                                             {version, version_value}})));
  }
};

void check_refused(const Made& made, const std::string& what) {
  CAPTURE(what);
  const std::string bytes = made.bytes();
  CHECK_THROWS_WITH(parse_dcp(bytes, "m"), Contains("m: ") && Contains(what));
  CHECK_THROWS_AS(parse_dcp(bytes, "m"), InputError);
}

ModelLayouts sides_of(const std::string& lines) {
  std::istringstream in(lines);
  LineReader reader(in, "made");
  return read_sides(reader, "made");
}

}  // namespace

TEST_CASE("a checkpoint that four ranks saved, of uneven shards") {
  ForeignLayouts found = layouts_of("fsdp.metadata");
  CHECK(tensor_lines(found.tensors) == R"({"tensor": "w1", "shape": [10,6], "dtype": "bf16"}
{"tensor": "small", "shape": [3,2], "dtype": "f32"}
{"tensor": "norm", "shape": [6], "dtype": "f32"}
{"tensor": "scalar", "shape": [], "dtype": "f32"}
)");
  CHECK(found.buffers ==
        line("w1", 0, "3,6", "bf16", "0:3,0:6") + line("w1", 1, "3,6", "bf16", "3:6,0:6") +
            line("w1", 2, "3,6", "bf16", "6:9,0:6") + line("w1", 3, "1,6", "bf16", "9:10,0:6") +
            line("small", 0, "1,2", "f32", "0:1,0:2") + line("small", 1, "1,2", "f32", "1:2,0:2") +
            line("small", 2, "1,2", "f32", "2:3,0:2") + line("norm", 1, "6", "f32", "") +
            line("scalar", 2, "", "f32", ""));
  CHECK(found.end_rank == 4);
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0] == "1 entry is no tensor and left out, such as 'lr'");
  ModelLayouts sides = sides_of(layouts_text(found));
  CHECK(sides.source->ranks().size() == 4);
  CHECK(sides.destination->buffers().empty());
}

TEST_CASE("a checkpoint of two axes, and one that a single process saved") {
  ForeignLayouts two = layouts_of("two_axes.metadata");
  CHECK(tensor_lines(two.tensors) == R"({"tensor": "model.wq", "shape": [8,6], "dtype": "bf16"}
{"tensor": "model.fused", "shape": [8,3], "dtype": "f16"}
{"tensor": "model.norm", "shape": [6], "dtype": "f32"}
{"tensor": "model.wo", "shape": [6,8], "dtype": "f8e4m3"}
)");
  // FSDP cuts what TP has cut: rows 4 and 5 are on rank 1.
  CHECK(two.buffers == line("model.wq", 0, "4,3", "bf16", "0:4,0:3") +
                           line("model.wq", 1, "4,3", "bf16", "0:4,3:6") +
                           line("model.wq", 2, "4,3", "bf16", "4:8,0:3") +
                           line("model.wq", 3, "4,3", "bf16", "4:8,3:6") +
                           line("model.fused", 0, "2,3", "f16", "0:2,0:3") +
                           line("model.fused", 1, "2,3", "f16", "4:6,0:3") +
                           line("model.fused", 2, "2,3", "f16", "2:4,0:3") +
                           line("model.fused", 3, "2,3", "f16", "6:8,0:3") +
                           line("model.norm", 1, "6", "f32", "") +
                           line("model.wo", 2, "6,4", "f8e4m3", "0:6,0:4") +
                           line("model.wo", 3, "6,4", "f8e4m3", "0:6,4:8"));
  CHECK(two.notes ==
        std::vector<std::string>{"1 entry is no tensor and left out, such as 'count'"});
  ForeignLayouts again = layouts_of("two_axes_protocol2.metadata");
  CHECK(tensor_lines(again.tensors) == tensor_lines(two.tensors));
  CHECK(again.buffers == two.buffers);
  ForeignLayouts one = layouts_of("one.metadata");
  CHECK(one.tensors.size() == 6);
  CHECK(one.buffers == line("model.embed.weight", 0, "16,8", "bf16", "") +
                           line("model.norm.weight", 0, "8", "f32", "") +
                           line("model.step", 0, "", "i64", "") +
                           line("model.mask", 0, "4", "bool", "") +
                           line("optimizer.state.embed.weight.step", 0, "", "f32", "") +
                           line("optimizer.state.embed.weight.exp_avg", 0, "16,8", "f32", ""));
  CHECK_THAT(one.notes.at(0), Contains("entries are no tensor and left out, such as '"));
  for (const ForeignLayouts* found : {&two, &one})
    CHECK_FALSE(sides_of(layouts_text(*found)).source->buffers().empty());
}

TEST_CASE("a checkpoint between the layouts of two jobs is a transfer") {
  ForeignLayouts from = layouts_of("fsdp.metadata");
  Made made;
  made.name = "w1";
  made.dtype = "bfloat16";
  made.shape = {10, 6};
  made.chunks = {{{0, 0}, {10, 4}, "__8_0.distcp"}, {{0, 4}, {10, 2}, "__9_0.distcp"}};
  ForeignLayouts to = sim::layouts_of(parse_dcp(made.bytes(), "m"), "to");
  std::istringstream in(layouts_text(from, to));
  LineReader reader(in, "made");
  auto layouts = read_layouts(reader, "made");
  CHECK(layouts->requests->requests().size() == 1);
  CHECK(layouts->destination->ranks() == std::vector<Rank>{Rank{8}, Rank{9}});
  made.dtype = "float32";
  CHECK_THROWS_WITH(layouts_text(from, sim::layouts_of(parse_dcp(made.bytes(), "m"), "to")),
                    "tensor 'w1': expected the same shape and dtype on both sides, found "
                    "bf16[10,6] and f32[10,6]");
}

TEST_CASE("metadata made up are read as they are meant") {
  Made made;
  made.chunks.push_back({{4, 0}, {0, 2}});  // an empty shard
  made.more = {{text("x"), pickled::object(pickled::global(kModule, "BytesStorageMetadata"), "}")}};
  DcpMetadata found = parse_dcp(made.bytes(), "m");
  REQUIRE(found.tensors.size() == 1);
  REQUIRE(found.tensors[0].chunks.size() == 2);
  CHECK(found.tensors[0].chunks[1].rank == Rank{1});
  CHECK(found.tensors[0].chunks[1].file == "__1_0.distcp");
  CHECK(found.tensors[0].chunks[1].box == Box{{2, 0}, {4, 2}});
  CHECK(found.left_out == std::vector<std::string>{"x"});
}

TEST_CASE("several chunks that a rank saved of a tensor are buffers of their own") {
  Made made;
  made.name = "a \"b\"";
  made.chunks = {{{0, 0}, {1, 2}, "x/__7_0.distcp"},
                 {{1, 0}, {3, 1}, "__7_1.distcp"},
                 {{1, 1}, {3, 1}, "__12_345.distcp"}};
  ForeignLayouts found = sim::layouts_of(parse_dcp(made.bytes(), "m"), "to");
  auto line = [](const char* number, const char* rank, const char* shape, const char* box) {
    return fmt::format(R"({{"side": "to", "buffer": "a \"b\"{}", "ranks": "{}", "shape": [{}], )"
                       R"("dtype": "f32", "parts": [{{"tensor": "a \"b\"", "box": "{}"}}]}})"
                       "\n",
                       number, rank, shape, box);
  };
  CHECK(found.buffers == line("", "7", "1,2", "0:1,0:2") + line("#2", "7", "3,1", "1:4,0:1") +
                             line("", "12", "3,1", "1:4,1:2"));
  CHECK(sides_of(layouts_text(found)).destination->buffers().size() == 3);
}

TEST_CASE("metadata of Megatron-Core say which tensors it saved in another shape") {
  Made made;
  made.type = pickled::global("megatron.core.dist_checkpointing.strategies.torch", "MCoreMetadata");
  made.version = text("mcore_data");
  CHECK(sim::layouts_of(parse_dcp(made.bytes(), "m"), "from").notes.empty());
  made.version_value = pickled::dict(
      {{text("w"),
        pickled::dict({{text("nd_reformulated_orig_global_shape"), pickled::tuple({})}})},
       {text("v"), "}"}});
  CHECK(sim::layouts_of(parse_dcp(made.bytes(), "m"), "from").notes ==
        std::vector<std::string>{"1 tensor is saved in another shape than the model's"});
  made.version_value = "K\x01";
  check_refused(made, "mcore_data: expected a dict, found 1");
}

TEST_CASE("metadata that are wrong are refused with what is wrong") {
  Made made;
  made.chunks[1].offsets = {3, 0};
  check_refused(made, "tensor 'w': expected chunks within [4,2], found [2,2] at [3,0]");
  made = {};
  made.chunks[0].sizes = {2};
  check_refused(made, "tensor 'w': expected chunks within [4,2], found [2] at [0,0]");
  made = {};
  made.chunks[1].offsets = {1, 0};
  check_refused(made, "expected chunks without common elements, found [0:2,0:2] and [1:3,0:2]");
  made = {};
  made.chunks.pop_back();
  check_refused(made, "tensor 'w': expected chunks with its 8 elements, found 4");
  made = {};
  made.chunks[1].file = "model-00001.safetensors";
  check_refused(made,
                "tensor 'w': expected files such as __0_0.distcp, which name the rank that saved, "
                "found 'model-00001.safetensors'");
  for (const char* file : {"__0.distcp", "__1_.distcp", "__-1_0.distcp", "_1_0.distcp", ".distcp",
                           "__.distcp", "__1048576_0.distcp", "__9999999999_0.distcp", ""}) {
    made.chunks[1].file = file;
    check_refused(made, "expected files such as __0_0.distcp");
  }
  made = {};
  made.is_stored = false;
  check_refused(made,
                "expected each of its chunks in storage_data, found none for the one at [0,0]");
  made = {};
  made.dtype = "complex128";
  check_refused(made, "tensor 'w': dtype: expected");
  made.dtype = "quint8";
  check_refused(made, "found torch.quint8, which is not used");
  made = {};
  made.version = text("extra");
  check_refused(made, "metadata: expected the fields that PyTorch's has alone, found 'extra'");
  made.version = "K\x01";
  check_refused(made, "metadata: expected a text, found 1");
  made = {};
  made.name = "\xff";
  check_refused(made, "expected names of tensors in UTF-8, found '\\xff'");
  made = {};
  made.more = {{text("w"), pickled::object(pickled::global(kModule, "BytesStorageMetadata"), "}")}};
  check_refused(made, "tensor 'w': expected each name once, found it twice");
  made.more = {{text("x"), pickled::dict({})}};
  check_refused(made, "tensor 'x': expected a TensorStorageMetadata, found a dict of 0");
}

TEST_CASE("files that are no metadata of a checkpoint are refused") {
  test::TemporaryFolder folder;
  CHECK_THROWS_WITH(read_dcp(folder.path()),
                    Contains("expected a checkpoint of torch.distributed.checkpoint with the file "
                             ".metadata, found none"));
  CHECK_THROWS_WITH(read_dcp(folder / "none"), Contains("found no such file"));
  test::write_file(folder / ".metadata", pickled::pickle("N"));
  CHECK_THROWS_WITH(
      read_dcp(folder.path()),
      Contains("/.metadata: metadata: expected the Metadata of torch.distributed.checkpoint, "
               "found None"));
  test::write_file(folder / ".metadata",
                   pickled::pickle(pickled::made("cposix\nsystem\n", {text("touch ran")})));
  CHECK_THROWS_WITH(read_dcp(folder.path() + "/"),
                    Contains("expected names of PyTorch's metadata alone, found posix.system"));
  test::write_file(folder / ".metadata", Made{}.bytes());
  CHECK(read_dcp(folder.path()).tensors.size() == 1);
}

TEST_CASE("metadata that end too early or have other bytes are refused or read") {
  test::Prng prng(1);
  for (const char* name :
       {"fsdp.metadata", "two_axes.metadata", "two_axes_protocol2.metadata", "one.metadata"}) {
    const std::string whole = bytes_of(name);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      // A copy of the exact size, so that a sanitizer sees what is read beyond it.
      std::vector<char> bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK_THROWS_AS(parse_dcp({bytes.data(), bytes.size()}, name), InputError);
    }
    int refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::vector<char> bytes(whole.begin(), whole.end());
      bytes[at] = static_cast<char>(prng.below(256));
      try {
        sim::layouts_of(parse_dcp({bytes.data(), bytes.size()}, name), "from");
      } catch (const InputError&) {
        ++refused;
      }
    }
    CHECK(refused > 500);
  }
}

}  // namespace reshard::sim::dcp_tests
