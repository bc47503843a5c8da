// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/file_kinds.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/base/cursor.h"

namespace reshard {
namespace {

constexpr std::size_t kLookedAt = std::size_t{1} << 16;

// How a kind is recognized: the start of the file (of a text, after whitespace) and words that must
// all occur.
struct Row {
  std::string_view start;
  std::array<std::string_view, 2> words;
  FileKind kind;
};

// The first matching row wins, so rows with more conditions precede rows with fewer.
constexpr Row kBinary[] = {
    {"\x1f\x8b", {}, {"", "a gzip file; decompress it first (gunzip)"}},
    {"\x28\xb5\x2f\xfd", {}, {"", "a zstd file; decompress it first (unzstd)"}},
    {"\xfd"
     "7zXZ",
     {},
     {"", "an xz file; decompress it first (unxz)"}},
    {"BZh", {}, {"", "a bzip2 file; decompress it first (bunzip2)"}},
    {"PK\x03\x04", {}, {"", "a zip archive, such as torch.save writes"}},
    {"\x93NUMPY", {}, {"", "a NumPy array"}},
    {"\x89HDF", {}, {"", "an HDF5 file"}},
    {"\x7f"
     "ELF",
     {},
     {"", "a program"}},
    {"%PDF", {}, {"", "a PDF"}},
    {"SQLite format 3", {}, {"", "an SQLite database, such as Nsight Systems exports"}},
};
constexpr Row kTexts[] = {
    {"reshard-topology", {}, {"topology", "a reshard topology"}},
    {"reshard-plan", {}, {"plan", "a reshard plan"}},
    {"version https://git-lfs", {}, {"", "a Git LFS pointer; fetch the file first (git lfs pull)"}},
    {"HloModule", {}, {"", "an XLA HLO module"}},
    {"module @", {}, {"", "an MLIR module"}},
    {"", {"D\\D", "Bandwidth"}, {"matrices", "p2pBandwidthLatencyTest output"}},
    {"",
     {"nvbandwidth", "memcpy"},
     {"", "nvbandwidth output; p2pBandwidthLatencyTest's matrices can be read"}},
    {"", {"nThread", "nGpus"}, {"measured", "nccl-tests output"}},
    {"", {"algbw", "busbw"}, {"measured", "nccl-tests output"}},
    {"",
     {"NVIDIA-SMI", "Driver Version"},
     {"", "nvidia-smi output; that of nvidia-smi topo -m can be read"}},
    {"", {"GPU0", "CPU Affinity"}, {"topology", "nvidia-smi topo -m output"}},
    {"", {"NCCL INFO"}, {"log", "an NCCL log (NCCL_DEBUG=INFO)"}},
    {"# OSU", {}, {"", "OSU benchmark output; nccl-tests tables can be read"}},
    {"num_ranks ", {}, {"", "a GOAL schedule"}},
};
constexpr Row kXml[] = {
    {"", {"<system", "<xgmi"}, {"", "an RCCL topology of AMD GPUs"}},
    {"", {"<system", "version=\"2\""}, {"", "an RCCL topology of AMD GPUs"}},
    {"", {"<system"}, {"topology", "an NCCL topology"}},
    {"",
     {"<graphs"},
     {"", "NCCL graphs (NCCL_GRAPH_DUMP_FILE); the file of NCCL_TOPO_DUMP_FILE can be read"}},
    {"",
     {"<topology", "<object"},
     {"", "an hwloc topology; the file of NCCL_TOPO_DUMP_FILE can be read"}},
    {"",
     {"<nvidia_smi_log"},
     {"", "nvidia-smi -q -x output; that of nvidia-smi topo -m can be read"}},
    {"", {"<svg"}, {"", "an SVG picture"}},
    {"", {"<html"}, {"", "a web page"}},
    {"", {"<HTML"}, {"", "a web page"}},
    {"", {"<algo"}, {"", "an MSCCL algorithm"}},
};
constexpr Row kJson[] = {
    {"", {"\"reshard_trace\""}, {"trace", "a reshard trace"}},
    {"", {"\"reshard_check\""}, {"copies", "copies for reshard check"}},
    {"", {"\"reshard_digest\""}, {"", "digests of reshard digest"}},
    {"", {"\"reshard_measurements\""}, {"", "reshard validate --measurements output"}},
    {"", {"\"schema\"", "\"reshard."}, {"report", "a reshard report (--json)"}},
    {"", {"\"traceEvents\"", "\"deviceProperties\""}, {"", "a torch.profiler trace (Kineto)"}},
    {"",
     {"\"traceEvents\""},
     {"", "a Chrome trace, such as torch.profiler (Kineto) or Perfetto writes"}},
    {"[",
     {"\"ph\"", "\"ts\""},
     {"", "a Chrome trace, such as torch.profiler (Kineto) or Perfetto writes"}},
    {"", {"\"pg_config\"", "\"entries\""}, {"", "a PyTorch flight recorder dump"}},
    {"", {"\"collective_seq_id\""}, {"", "a PyTorch flight recorder dump"}},
    {"", {"\"coll_perf\""}, {"measured", "NCCL Inspector lines"}},
    {"", {"\"schema\"", "\"nodes\""}, {"", "a PyTorch execution trace (PARAM, Chakra)"}},
    {"", {"\"attr\"", "\"ctrl_deps\""}, {"", "a PyTorch execution trace (PARAM, Chakra)"}},
    {"", {"\"comm_type\""}, {"", "a Chakra execution trace in JSON"}},
    {"", {"\"comms\"", "\"in_msg_size\""}, {"", "a PARAM communication trace"}},
    {"", {"\"markers\"", "\"comms\""}, {"", "a PARAM communication trace"}},
    {"",
     {"\"nvbandwidth\""},
     {"", "nvbandwidth -j output; p2pBandwidthLatencyTest's matrices can be read"}},
    {"", {"\"weight_map\""}, {"", "a safetensors index"}},
    {"", {"\"model_type\""}, {"", "a model's config.json"}},
    {"", {"\"architectures\""}, {"", "a model's config.json"}},
    {"", {"\"results\"", "\"out_of_place\""}, {"measured", "nccl-tests JSON (-J)"}},
    {"", {"\"results\"", "\"devices\""}, {"measured", "nccl-tests JSON (-J)"}},
};
constexpr FileKind kOtherJson{"json", "some other kind of JSON"},
    kOtherXml{"xml", "some other kind of XML"},
    kPickle{"", "a Python pickle, such as a PyTorch flight recorder dump"},
    kSafetensors{"", "a safetensors file"}, kChakra{"", "a Chakra execution trace"},
    kWide{"", "UTF-16 text without a byte order mark; save it as UTF-8"},
    kBytes{"", "a binary file"}, kEmpty{"empty", "an empty file"};

const FileKind* found_in(std::string_view text, std::span<const Row> rows) {
  for (const Row& row : rows) {
    bool all = text.starts_with(row.start);
    for (std::string_view word : row.words) all = all && text.find(word) != std::string_view::npos;
    if (all) return &row.kind;
  }
  return nullptr;
}

bool is_binary(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\x1b' && c != '\f') ||
           c == 0x7f;
  });
}

const FileKind* binary_kind(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  // UTF-16 without a mark: in plain letters every other byte is zero.
  std::size_t looked_at = std::min<std::size_t>(text.size(), 64) / 2 * 2, zeros[2] = {0, 0};
  for (std::size_t i = 0; i < looked_at; ++i) zeros[i % 2] += text[i] == '\0' ? 1 : 0;
  if (looked_at > 3 && std::max(zeros[0], zeros[1]) * 2 == looked_at &&
      std::min(zeros[0], zeros[1]) == 0)
    return &kWide;
  if (text.size() > 2 && byte(0) == 0x80 && byte(1) >= 2 && byte(1) <= 5) return &kPickle;
  // safetensors: an 8-byte length, too small to fill its upper bytes, then a JSON header.
  if (text.size() > 9 && text[8] == '{' && byte(5) + byte(6) + byte(7) == 0) return &kSafetensors;
  for (std::string_view word : {"is_cpu_op", "comm_type", "num_ops"})
    if (text.find(word) != std::string_view::npos) return &kChakra;
  return &kBytes;
}

}  // namespace

const FileKind* file_kind(std::string_view whole) {
  std::string_view text = after_byte_order_mark(whole.substr(0, kLookedAt));
  if (const FileKind* kind = found_in(text, kBinary)) return kind;
  std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return &kEmpty;
  if (static_cast<unsigned char>(text[0]) == 0x80 || is_binary(text)) return binary_kind(text);
  text.remove_prefix(first);
  if (text[0] == '<') {
    const FileKind* kind = found_in(text, kXml);
    return kind != nullptr ? kind : &kOtherXml;
  }
  // A log may also begin with '[', so a list must hold an object.
  bool list =
      text[0] == '[' &&
      text.substr(std::min(text.find_first_not_of(" \t\r\n["), text.size())).starts_with('{');
  if (text[0] == '{' || list) {
    const FileKind* kind = found_in(text, kJson);
    return kind != nullptr ? kind : &kOtherJson;
  }
  return found_in(text, kTexts);
}

std::string file_look(std::string_view text) {
  if (const FileKind* kind = file_kind(text)) return "what looks like " + std::string(kind->what);
  std::string_view rest = after_byte_order_mark(text);
  std::string_view line = take_line(rest);
  return quoted(line, 60);
}

std::string utf8_text(std::string text) {
  bool little = text.starts_with("\xff\xfe"), big = text.starts_with("\xfe\xff");
  if (!little && !big) return text;
  std::string out;
  auto unit = [&](std::size_t at) {
    auto low = static_cast<unsigned char>(text[at + (little ? 0 : 1)]);
    auto high = static_cast<unsigned char>(text[at + (little ? 1 : 0)]);
    return static_cast<std::uint32_t>(high << 8 | low);
  };
  auto put = [&](std::uint32_t bits, int shift, std::uint32_t lead) {
    out += static_cast<char>(lead | (bits >> shift & (lead == 0x80 ? 0x3f : 0xff)));
  };
  for (std::size_t at = 2; at + 1 < text.size(); at += 2) {
    std::uint32_t code = unit(at);
    if (code >= 0xd800 && code < 0xdc00 && at + 3 < text.size() && unit(at + 2) >= 0xdc00 &&
        unit(at + 2) < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (unit(at + 2) - 0xdc00);
      at += 2;
    } else if (code >= 0xd800 && code < 0xe000) {
      code = 0xfffd;  // an unpaired surrogate
    }
    if (code < 0x80) {
      out += static_cast<char>(code);
      continue;
    }
    if (code >= 0x10000) {
      put(code, 18, 0xf0);
      put(code, 12, 0x80);
      put(code, 6, 0x80);
    } else if (code >= 0x800) {
      put(code, 12, 0xe0);
      put(code, 6, 0x80);
    } else {
      put(code, 6, 0xc0);
    }
    put(code, 0, 0x80);
  }
  return out;
}

}  // namespace reshard
