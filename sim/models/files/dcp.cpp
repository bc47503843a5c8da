// SPDX-License-Identifier: BSD-3-Clause
#include "sim/models/files/dcp.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/printable.h"
#include "core/layout/box_index.h"
#include "sim/models/files/pickle.h"
#include "sim/weights/mapped_file.h"

namespace reshard::sim {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata",
                           kOldModule = "torch.distributed._shard.sharded_tensor.metadata",
                           kFiles = "torch.distributed.checkpoint.filesystem",
                           kMegatron = "megatron.core.dist_checkpointing.strategies.torch";
constexpr std::string_view kMetadata = "Metadata", kMegatronsMetadata = "MCoreMetadata",
                           kTensor = "TensorStorageMetadata", kBytes = "BytesStorageMetadata",
                           kChunk = "ChunkStorageMetadata", kProperties = "TensorProperties",
                           kIndex = "MetadataIndex", kInfo = "_StorageInfo", kSize = "Size";

// The names in files of PyTorch 2.0 to 2.15 and Megatron-Core, and those of path classes in all
// releases of Python.
constexpr PickleGlobal kGlobals[] = {
    {kModule, kMetadata, true},
    {kMegatron, kMegatronsMetadata, true},
    {kModule, kTensor, true},
    {kModule, kBytes, true},
    {kModule, kChunk, true},
    {kModule, kProperties, true},
    {kOldModule, kProperties, true},
    {kModule, "_MEM_FORMAT_ENCODING", true},
    {kOldModule, "MEM_FORMAT_ENCODING", true},
    {kModule, kIndex, true},
    {kFiles, kInfo, true},
    {kModule, "StorageMeta", true},
    {"torch", kSize, true},
    {"torch.serialization", "_get_layout", true},
    {"collections", "OrderedDict", true},
    {"pathlib", "PosixPath", true},
    {"pathlib", "PurePosixPath", true},
    {"pathlib", "WindowsPath", true},
    {"pathlib._local", "PosixPath", true},
    {"pathlib._local", "PurePosixPath", true},
    {"pathlib._local", "WindowsPath", true},
    {"torch", "float64", false},
    {"torch", "float32", false},
    {"torch", "float16", false},
    {"torch", "bfloat16", false},
    {"torch", "float8_e4m3fn", false},
    {"torch", "float8_e5m2", false},
    {"torch", "float8_e4m3fnuz", false},
    {"torch", "float8_e5m2fnuz", false},
    {"torch", "float8_e8m0fnu", false},
    {"torch", "float4_e2m1fn_x2", false},
    {"torch", "int64", false},
    {"torch", "int32", false},
    {"torch", "int16", false},
    {"torch", "int8", false},
    {"torch", "uint64", false},
    {"torch", "uint32", false},
    {"torch", "uint16", false},
    {"torch", "uint8", false},
    {"torch", "bool", false},
    {"torch", "complex32", false},
    {"torch", "complex64", false},
    {"torch", "complex128", false},
};

// A limit is needed because a pickle can refer to one list of chunks from many tensors.
constexpr std::int64_t kMostChunks = std::int64_t{1} << 24;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
// At most so many fields in an object of PyTorch; none has nearly as many.
constexpr std::size_t kMostFields = 32;

// The 3 of "__3_0.distcp", with or without a folder.
std::optional<Rank> rank_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with("__") || !name.ends_with(".distcp")) return std::nullopt;
  name = name.substr(2, name.size() - 2 - std::string_view(".distcp").size());
  std::size_t between = name.find('_');
  if (between == std::string_view::npos) return std::nullopt;
  auto is_number = [](std::string_view text) {
    return !text.empty() && text.size() < 10 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  std::string_view number = name.substr(0, between);
  if (!is_number(number) || !is_number(name.substr(between + 1))) return std::nullopt;
  std::int64_t rank = 0;
  for (char c : number) rank = rank * 10 + (c - '0');
  if (rank >= kMaxRanks) return std::nullopt;
  return Rank{static_cast<std::int32_t>(rank)};
}

class DcpReader {
 public:
  DcpReader(std::string_view bytes, const std::string& place)
      : pickle_(bytes, kGlobals, place), place_(place) {}

  DcpMetadata read() {
    PickleId root = pickle_.root();
    if (!is(root, kMetadata) && !is(root, kMegatronsMetadata))
      fail("metadata", "the Metadata of torch.distributed.checkpoint", pickle_.shown(root));
    for_each_field(root, "metadata", [&](std::string_view field) {
      constexpr std::string_view kKnown[] = {"state_dict_metadata", "storage_data", "planner_data",
                                             "storage_meta",        "version",      "mcore_data"};
      if (std::find(std::begin(kKnown), std::end(kKnown), field) == std::end(kKnown))
        fail("metadata", "the fields that PyTorch's has alone", reshard::quoted(field));
    });
    read_files(field(root, "storage_data", "metadata"));
    for_each_entry(field(root, "state_dict_metadata", "metadata"), "state_dict_metadata",
                   [&](PickleId key, PickleId value) { read_entry(key, value); });
    auto megatron = pickle_.find(fields(root, "metadata"), "mcore_data");
    if (megatron && pickle_[*megatron].kind != Kind::None)
      for_each_entry(*megatron, "mcore_data", [&](PickleId, PickleId each) {
        if (!pickle_.entries(each).empty()) ++out_.reshaped;
      });
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string_view where, std::string_view expected,
                         std::string_view found) const {
    throw InputError(fmt::format("{}: {}: expected {}, found {}", place_, where, expected, found));
  }

  // ---- values of the pickle

  bool is(PickleId id, std::string_view name) const {
    return pickle_[id].kind == Kind::Object && pickle_[id].text == name;
  }
  void check_object(PickleId id, std::string_view name, std::string_view where) const {
    if (!is(id, name)) fail(where, fmt::format("a {}", name), pickle_.shown(id));
  }
  // The dict that is the object's state.
  PickleId fields(PickleId object, std::string_view where) const {
    auto state = pickle_.state(object);
    if (!state || pickle_[*state].kind != Kind::Dict ||
        pickle_.entries(*state).size() > 2 * kMostFields)
      fail(where, "an object with fields", state ? pickle_.shown(*state) : "one without");
    return *state;
  }
  PickleId field(PickleId object, std::string_view name, std::string_view where) const {
    auto found = pickle_.find(fields(object, where), name);
    if (!found) fail(where, fmt::format("the field {}", name), "none");
    return *found;
  }
  template <class Visit>
  void for_each_entry(PickleId dict, std::string_view where, Visit&& visit) const {
    if (pickle_[dict].kind != Kind::Dict) fail(where, "a dict", pickle_.shown(dict));
    std::span<const PickleId> entries = pickle_.entries(dict);
    for (std::size_t i = 0; i < entries.size(); i += 2) visit(entries[i], entries[i + 1]);
  }
  template <class Visit>
  void for_each_field(PickleId object, std::string_view where, Visit&& visit) const {
    for_each_entry(fields(object, where), where,
                   [&](PickleId key, PickleId) { visit(text_in(key, where)); });
  }
  std::string_view text_in(PickleId id, std::string_view where) const {
    if (pickle_[id].kind != Kind::Text) fail(where, "a text", pickle_.shown(id));
    return pickle_[id].text;
  }
  // A tuple, or a Size made from one.
  DimVector size_in(PickleId id, std::string_view where) const {
    constexpr std::string_view kWhat = "a Size of at most 8 integers from 0";
    PickleId tuple = id;
    if (is(id, kSize) && !pickle_.entries(pickle_.arguments(id)).empty())
      tuple = pickle_.entries(pickle_.arguments(id))[0];
    if (pickle_[tuple].kind != Kind::Tuple || pickle_.entries(tuple).size() > kMaxDims)
      fail(where, kWhat, pickle_.shown(tuple));
    DimVector out;
    for (PickleId entry : pickle_.entries(tuple)) {
      const PickleValue& value = pickle_[entry];
      if (value.kind != Kind::Int || value.number < 0 || value.number > kMaxBytes)
        fail(where, kWhat, pickle_.shown(entry));
      out.push_back(value.number);
    }
    return out;
  }

  // ---- what they mean

  // Entries without an offset are not tensors and are skipped.
  void read_files(PickleId dict) {
    constexpr std::string_view kWhere = "storage_data";
    for_each_entry(dict, kWhere, [&](PickleId key, PickleId value) {
      check_object(key, kIndex, kWhere);
      check_object(value, kInfo, kWhere);
      std::string_view name = text_in(field(key, "fqn", kWhere), kWhere);
      std::string_view path = text_in(field(value, "relative_path", kWhere), kWhere);
      auto offset = pickle_.find(fields(key, kWhere), "offset");
      if (offset && pickle_[*offset].kind != Kind::None)
        files_.insert_or_assign(std::pair(name, size_in(*offset, kWhere)), path);
    });
  }

  void read_entry(PickleId key, PickleId value) {
    std::string name(text_in(key, "state_dict_metadata"));
    std::string where = fmt::format("tensor {}", reshard::quoted(name, 200));
    if (!names_.insert(name).second) fail(where, "each name once", "it twice");
    if (is(value, kBytes)) {
      out_.left_out.push_back(std::move(name));
      return;
    }
    check_object(value, kTensor, where);
    PickleId properties = field(value, "properties", where);
    DcpTensor out{{std::move(name), size_in(field(value, "size", where), where + ": size"),
                   dtype_in(properties, where)},
                  {}};
    check_tensor(out.tensor, place_);
    read_chunks(field(value, "chunks", where), where, out);
    out_.tensors.push_back(std::move(out));
  }

  // The dtype is the first value in the tuple that is the state of the properties.
  DType dtype_in(PickleId properties, const std::string& where) const {
    check_object(properties, kProperties, where + ": properties");
    auto state = pickle_.state(properties);
    if (!state || pickle_[*state].kind != Kind::Tuple || pickle_.entries(*state).empty() ||
        pickle_[pickle_.entries(*state)[0]].kind != Kind::Global)
      fail(where + ": properties", "a tuple with a dtype first",
           state ? pickle_.shown(*state) : "none");
    return parse_dtype(pickle_[pickle_.entries(*state)[0]].text,
                       fmt::format("{}: {}: dtype", place_, where));
  }

  void read_chunks(PickleId list, const std::string& where, DcpTensor& out) {
    if (pickle_[list].kind != Kind::List) fail(where + ": chunks", "a list", pickle_.shown(list));
    std::vector<Box> boxes;
    Int128 elements = 0;
    for (PickleId chunk : pickle_.entries(list)) {
      if (++chunks_ > kMostChunks)
        fail(where, fmt::format("at most {} chunks in total", kMostChunks), "more");
      check_object(chunk, kChunk, where + ": chunks");
      Box box = chunk_box(chunk, where, out.tensor.shape);
      if (box.empty()) continue;
      elements += box.volume();
      boxes.push_back(box);
      out.chunks.push_back(chunk_of(box, where, out.tensor));
    }
    check_cover(std::move(boxes), elements, where, out.tensor);
  }

  Box chunk_box(PickleId chunk, const std::string& where, const Shape& shape) const {
    DimVector lo = size_in(field(chunk, "offsets", where), where + ": offsets"),
              extents = size_in(field(chunk, "sizes", where), where + ": sizes");
    bool fits = lo.size() == shape.size() && extents.size() == shape.size();
    for (int d = 0; fits && d < lo.size(); ++d)
      fits = lo[d] <= shape[d] && extents[d] <= shape[d] - lo[d];
    if (!fits)
      fail(where, fmt::format("chunks within [{}]", reshard::text(shape)),
           fmt::format("[{}] at [{}]", reshard::text(extents), reshard::text(lo)));
    return box_at(lo, extents);
  }

  DcpChunk chunk_of(const Box& box, const std::string& where, const ForeignTensor& tensor) const {
    auto file = files_.find(std::pair(std::string_view(tensor.name), box.lo));
    if (file == files_.end())
      fail(where, "each of its chunks in storage_data",
           fmt::format("none for the one at [{}]", reshard::text(box.lo)));
    auto rank = rank_of(file->second);
    if (!rank)
      fail(where, "files such as __0_0.distcp, which name the rank that saved",
           reshard::quoted(file->second, 200));
    return {box, *rank, std::string(file->second)};
  }

  // PyTorch demands this as well when it saves.
  void check_cover(std::vector<Box> boxes, Int128 elements, const std::string& where,
                   const ForeignTensor& tensor) const {
    if (boxes.size() > 1)
      if (auto both = BoxIndex(boxes).overlap())
        fail(where, "chunks without common elements",
             fmt::format("{} and {}", reshard::text(boxes[both->first]),
                         reshard::text(boxes[both->second])));
    if (elements != element_count(tensor.shape))
      fail(where, fmt::format("chunks with its {} elements", element_count(tensor.shape)),
           fmt::to_string(static_cast<std::int64_t>(elements)));
  }

  Pickle pickle_;
  const std::string& place_;
  std::map<std::pair<std::string_view, DimVector>, std::string_view> files_;
  std::set<std::string> names_;
  std::int64_t chunks_ = 0;
  DcpMetadata out_;
};

}  // namespace

DcpMetadata parse_dcp(std::string_view bytes, const std::string& place) {
  if (bytes.size() > kMostBytes)
    throw InputError(
        fmt::format("{}: expected at most 1 GiB, found {} bytes", place, bytes.size()));
  return DcpReader(bytes, place).read();
}

DcpMetadata read_dcp(const std::string& path) {
  std::error_code error;
  std::string file = path;
  if (std::filesystem::is_directory(path, error)) {
    file += path.ends_with('/') ? ".metadata" : "/.metadata";
    if (!std::filesystem::exists(file, error))
      throw InputError(
          fmt::format("{}: expected a checkpoint of torch.distributed.checkpoint with the file "
                      ".metadata, found none",
                      shown_path(path)));
  }
  MappedFile mapped(file, "the metadata of a checkpoint of torch.distributed.checkpoint");
  std::string_view bytes(reinterpret_cast<const char*>(mapped.bytes().data()),
                         mapped.bytes().size());
  return parse_dcp(bytes, shown_path(file));
}

ForeignLayouts layouts_of(const DcpMetadata& metadata, std::string_view side) {
  ForeignLayouts out;
  BoxBuffers buffers(side);
  for (const DcpTensor& each : metadata.tensors) {
    out.tensors.push_back(each.tensor);
    for (const DcpChunk& chunk : each.chunks) buffers.add(chunk.rank, each.tensor, chunk.box);
  }
  out.buffers = buffers.lines();
  out.end_rank = buffers.end_rank();
  if (std::size_t count = metadata.left_out.size(); count > 0)
    out.notes.push_back(fmt::format("{} {} no tensor and left out, such as {}", count,
                                    count == 1 ? "entry is" : "entries are",
                                    reshard::quoted(metadata.left_out.front(), 200)));
  if (metadata.reshaped > 0)
    out.notes.push_back(fmt::format("{} {} saved in another shape than the model's",
                                    metadata.reshaped,
                                    metadata.reshaped == 1 ? "tensor is" : "tensors are"));
  return out;
}

}  // namespace reshard::sim
