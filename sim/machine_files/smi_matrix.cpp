// SPDX-License-Identifier: BSD-3-Clause
// Reads `nvidia-smi topo -m`: one word for the connection between any two GPUs and NICs: X, NV#
// (the number of NVLinks), PIX, PXB, PHB, NODE, SYS; followed by CPU and NUMA affinity. The matrix
// has no rates: they follow from the class of GPU, which is named if the text has lines of
// `nvidia-smi -L`, and is otherwise concluded from the number of NVLinks.
//
// Columns may be spaced in any way, with or without escapes that underline. PIX joins devices below
// one bridge, PXB those below several bridges under one; sockets are the NUMA nodes if these are
// given, as SYS also occurs between GPUs of one socket.
#include <map>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/disjoint_sets.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/machine_files/formats.h"
#include "sim/machine_files/known_parts.h"
#include "sim/machine_files/matrix_words.h"
#include "sim/machine_files/node_parts.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxColumns = 512;
constexpr int kUnknownGeneration = 4;

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU") && name.size() > 3 && whole_number(name.substr(3));
}

// "        GPU0    GPU1    NIC0    CPU Affinity ..."
bool is_header(const std::vector<std::string_view>& words) {
  return words.size() > 1 && words[0] == "GPU0" && words[1] != "X";
}

class SmiReader {
 public:
  SmiReader(std::string_view text, const std::string& file, const std::optional<UsersGpu>& gpu)
      : text_(text), file_(file), users_gpu_(gpu) {}

  ReadTopology read() {
    read_lines();
    compare_directions();
    conclude_gpu();
    parts_.name = machine_name(file_);
    find_sockets();
    hang_up();
    add_nvlinks();
    TopologyDescription description = describe(parts_, file_);
    compare_classes(description);
    return {std::move(description), std::move(doubts_)};
  }

 private:
  struct Row {
    std::string name;
    std::vector<std::string> cells;  // by column
    std::optional<std::int64_t> numa;
    std::int64_t line = 0;
  };

  [[noreturn]] void fail(std::int64_t line, std::string_view expected,
                         const std::string& found) const {
    throw InputError(fmt::format("{}:{}: expected {}, found {}", file_, line, expected, found));
  }
  std::string place(std::size_t row) const { return fmt::format("{}:{}", file_, rows_[row].line); }

  // ---- the text

  void read_lines() {
    std::string_view rest = after_byte_order_mark(text_);
    for (std::int64_t line = 1; !rest.empty(); ++line) {
      std::string plain = without_escapes(take_line(rest));
      std::vector<std::string_view> words = words_of(plain);
      if (words.empty()) continue;
      if (rows_.empty() && is_header(words))
        read_header(line, words);
      else if (words[0] == "GPU" && words.size() > 2 && words[1].ends_with(':'))
        read_name(plain);
      else if (!rows_.empty() && read_ < rows_.size() && words[0] == rows_[read_].name)
        read_row(line, words);
      else if (!rows_.empty() && read_ < rows_.size())
        fail(line, fmt::format("the row {}", rows_[read_].name), quoted(words[0]));
    }
    if (rows_.empty() || read_ < rows_.size())
      fail(1, rows_.empty() ? "the matrix of nvidia-smi topo -m" : "a row for each of its columns",
           rows_.empty() ? "none" : fmt::format("none for {}", rows_[read_].name));
    while (gpus_ < rows_.size() && is_gpu(rows_[gpus_].name)) ++gpus_;
    for (std::size_t i = gpus_; i < rows_.size(); ++i)
      if (is_gpu(rows_[i].name)) fail(rows_[i].line, "GPUs before NICs", quoted(rows_[i].name));
  }

  // "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-..)".
  void read_name(std::string_view line) {
    if (named_) return;
    named_ = gpu_named(line);
    std::string_view name = line.substr(std::min(line.find(": ") + 2, line.size()));
    name = name.substr(0, name.find(" (UUID"));
    if (!named_ && unknown_.empty()) unknown_ = std::string(name);
  }

  void read_header(std::int64_t line, const std::vector<std::string_view>& words) {
    for (std::string_view word : words) {
      if (word == "CPU" || word == "NUMA" || word == "GPU") break;
      if (rows_.size() == kMaxColumns) fail(line, "at most 512 columns", "more");
      rows_.push_back({std::string(word), {}, {}});
    }
    for (std::size_t i = 1; i < words.size(); ++i) {
      cpu_column_ = cpu_column_ || words[i - 1] == "CPU";
      numa_column_ = numa_column_ || (words[i - 1] == "NUMA" && words[i] == "Affinity");
    }
  }

  void read_row(std::int64_t line, const std::vector<std::string_view>& words) {
    Row& row = rows_[read_];
    row.line = line;
    if (words.size() < rows_.size() + 1)
      fail(line, fmt::format("{} cells", rows_.size()), std::to_string(words.size() - 1));
    for (std::size_t i = 1; i <= rows_.size(); ++i) {
      std::string_view word = words[i];
      bool self = i - 1 == read_;
      bool links =
          word.starts_with("NV") && whole_number(word.substr(2)).value_or(0) > 0 && word.size() < 5;
      if (self ? word != "X"
               : !links && word != "PIX" && word != "PXB" && word != "PHB" && word != "NODE" &&
                     word != "SYS")
        fail(line, self ? "X on the diagonal" : "NV#, PIX, PXB, PHB, NODE or SYS", quoted(word));
      row.cells.emplace_back(word);
    }
    std::size_t after = rows_.size() + 1 + (cpu_column_ ? 1 : 0);
    if (numa_column_ && after < words.size()) row.numa = whole_number(words[after]);
    ++read_;
  }

  const std::string& cell(std::size_t row, std::size_t column) const {
    return rows_[row].cells[column];
  }
  std::int64_t links(std::size_t row, std::size_t column) const {
    const std::string& word = cell(row, column);
    return word.starts_with("NV") ? *whole_number(std::string_view(word).substr(2)) : 0;
  }

  void compare_directions() {
    for (std::size_t a = 0; a < rows_.size(); ++a)
      for (std::size_t b = a + 1; b < rows_.size(); ++b)
        if (cell(a, b) != cell(b, a))
          doubts_.push_back(fmt::format("{}: {} has {} to {}, which has {} back", place(a),
                                        rows_[a].name, cell(a, b), rows_[b].name, cell(b, a)));
  }

  // ---- what the matrix does not show

  // The most NVLinks of a GPU, if each link leads to one peer.
  std::int64_t links_of_gpu() const {
    std::int64_t most = 0;
    for (std::size_t a = 0; a < gpus_; ++a) {
      std::int64_t sum = 0;
      for (std::size_t b = 0; b < gpus_; ++b) sum += links(a, b);
      most = std::max(most, sum);
    }
    return most;
  }
  std::int64_t most_links() const {
    std::int64_t most = 0;
    for (std::size_t a = 0; a < gpus_; ++a)
      for (std::size_t b = 0; b < gpus_; ++b) most = std::max(most, links(a, b));
    return most;
  }

  // `most`: links to one peer; `all`: links of a GPU to all peers, if no switch joins them.
  static std::optional<std::int32_t> suggested_gpu(std::int64_t most, std::int64_t all) {
    if (most == 0) return std::nullopt;
    if (most > 12 || most == 8) return 90;     // H100; H800
    if (most > 6) return 80;                   // A100
    if (most == 6) return all > 18 ? 70 : 90;  // DGX-2; four GH200
    if (most == 4 && all == 4) return 86;      // a bridge of two
    return most > 2 ? 80 : 70;                 // four A100; DGX-1
  }

  void conclude_gpu() {
    std::int64_t most = most_links();
    std::optional<std::int32_t> suggested = suggested_gpu(most, links_of_gpu());
    if (users_gpu_ && named_ && *named_ != users_gpu_->compute_capability)
      fail(rows_[0].line,
           fmt::format("GPUs of sm{}, as given by gpu={}", users_gpu_->compute_capability,
                       users_gpu_->name),
           fmt::format("sm{}", *named_));
    if (users_gpu_) named_ = users_gpu_->compute_capability;
    if (!named_ && !unknown_.empty())
      assume(fmt::format("GPUs: {} is not known", quoted(unknown_)));
    parts_.machine.compute_capability = named_ ? named_ : suggested;
    if (!named_ && suggested)
      assume(
          fmt::format("GPUs: sm{}, inferred from {} NVLinks; add the output of `nvidia-smi -L` to "
                      "the file to be sure",
                      *suggested, most));
    const GpuClass& gpu = gpu_class(parts_.machine.compute_capability.value_or(80));
    int generation = parts_.machine.compute_capability ? gpu.pcie_generation : kUnknownGeneration;
    pcie_ = pcie_bytes_per_s(generation, 16);
    nic_ = gpu.nic_bytes_per_s;
    bool later = parts_.machine.compute_capability.value_or(0) >= 90;
    std::int64_t socket = socket_bytes_per_s(Cpu::Intel, "x86_64", 6, later ? 0x8F : 0x55);
    parts_.socket_bytes_per_s = 2 * socket;
    bool all_linked = true;
    for (std::size_t a = 0; a < gpus_; ++a)
      for (std::size_t b = 0; b < gpus_; ++b)
        all_linked = all_linked && (a == b || links(a, b) > 0);
    if (!all_linked)
      assume(
          fmt::format("PCIe: generation {} with 16 lanes, of which {} is achieved, also by "
                      "bridges; between sockets {}, both directions together",
                      generation, rate_text(pcie_), rate_text(2 * socket)));
    if (gpus_ < rows_.size())
      assume(fmt::format("NICs: {} each, as usual with such GPUs", rate_text(nic_)));
  }

  void assume(std::string what) { parts_.assumed.push_back(std::move(what)); }

  // ---- the tree

  bool one_of(const std::string& word, std::initializer_list<std::string_view> words) const {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  DisjointSets joined_by(std::initializer_list<std::string_view> words) const {
    DisjointSets sets(rows_.size());
    for (std::size_t a = 0; a < rows_.size(); ++a)
      for (std::size_t b = 0; b < rows_.size(); ++b)
        if (a != b && one_of(cell(a, b), words)) sets.join(a, b);
    return sets;
  }

  // Sockets are NUMA nodes; a NIC, or a GPU without one, belongs to the socket of the devices that
  // are nearer than SYS.
  void find_sockets() {
    DisjointSets near = joined_by({"PIX", "PXB", "PHB", "NODE"});
    std::map<std::size_t, std::int64_t> numa_of;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].numa) numa_of.try_emplace(near.first(i), *rows_[i].numa);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      auto numa = numa_of.find(near.first(i));
      std::int64_t mine = rows_[i].numa ? *rows_[i].numa
                          : numa != numa_of.end()
                              ? numa->second
                              : static_cast<std::int64_t>(kMaxColumns + near.first(i));
      sockets_.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(mine, 0, 1 << 20)));
    }
  }

  void hang_up() {
    DisjointSets inner = joined_by({"PIX"}), outer = joined_by({"PIX", "PXB"});
    std::vector<int> below_inner(rows_.size(), 0), below_outer(rows_.size(), 0);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      ++below_inner[inner.first(i)];
      ++below_outer[outer.first(i)];
    }
    std::map<std::pair<int, std::size_t>, std::int32_t> made;
    auto bridge = [&](int level, std::size_t set, NodeParts::AttachPoint above) {
      auto [entry, is_new] =
          made.try_emplace({level, set}, static_cast<std::int32_t>(parts_.bridges.size()));
      if (is_new) parts_.bridges.push_back({above, pcie_});
      return NodeParts::AttachPoint{entry->second, above.socket};
    };
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      NodeParts::AttachPoint where{-1, sockets_[i]};
      bool several = below_outer[outer.first(i)] > below_inner[inner.first(i)];
      if (several) where = bridge(0, outer.first(i), {-1, sockets_[outer.first(i)]});
      if (several || below_inner[inner.first(i)] > 1) where = bridge(1, inner.first(i), where);
      if (i < gpus_)
        parts_.gpus.push_back({where, pcie_});
      else
        parts_.nics.push_back({where, nic_});
    }
  }

  // If the links to all peers, added up, exceed those of a GPU, there must be switches.
  void add_nvlinks() {
    if (most_links() == 0) return assume_nvlinks();
    std::int32_t sm = *parts_.machine.compute_capability;
    const GpuClass& gpu = gpu_class(sm);
    std::int64_t each = gpu.nvlink_bytes_per_s;
    if (each == 0) fail(rows_[0].line, fmt::format("no NVLink on GPUs of sm{}", sm), "NV#");
    assume(
        fmt::format("NVLink: {} per link and direction, line rate of sm{}", rate_text(each), sm));
    if (links_of_gpu() <= gpu.nvlinks || gpus_ == 2) {
      for (std::size_t a = 0; a < gpus_; ++a)
        for (std::size_t b = a + 1; b < gpus_; ++b)
          if (std::int64_t count = std::min(links(a, b), links(b, a)); count > 0)
            parts_.nvlinks.push_back(
                {static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), count * each});
      return;
    }
    std::int64_t most = most_links();
    for (std::size_t a = 0; a < gpus_; ++a) {
      std::int64_t mine = 0;
      for (std::size_t b = 0; b < gpus_; ++b) mine = std::max(mine, links(a, b));
      parts_.gpus[a].switch_bytes_per_s = mine * each;
      for (std::size_t b = 0; b < gpus_; ++b)
        if (a < b && links(a, b) != most)
          doubts_.push_back(fmt::format("{}: {} has {} to {}, but others have NV{} to theirs",
                                        place(a), rows_[a].name, cell(a, b), rows_[b].name, most));
    }
    parts_.machine.nvls = sm >= 90;
    if (sm >= 90) assume("NVLink switches reduce (NVLS), as those of sm90 and later do");
  }

  // `nvidia-smi topo -mp` leaves NVLink out.
  void assume_nvlinks() {
    std::optional<std::int32_t> sm = parts_.machine.compute_capability;
    if (gpus_ < 2 || !sm || !mostly_linked(*sm)) return;
    if (users_gpu_ && users_gpu_->switch_bytes_per_s > 0) {
      for (NodeParts::Gpu& gpu : parts_.gpus)
        gpu.switch_bytes_per_s = users_gpu_->switch_bytes_per_s;
      parts_.machine.nvls = *sm >= 90;
      return assume(assumed_switches(*users_gpu_));
    }
    assume("NVLink: none, as the matrix has no NV#, which nvidia-smi topo -mp omits");
    if (!users_gpu_)
      doubts_.push_back(
          fmt::format("{}: {} GPUs of sm{} without NV#; if the machine has NVLink, use nvidia-smi "
                      "topo -m or name the GPU ({},gpu=h100)",
                      place(0), gpus_, *sm, file_));
  }

  // Checks that the derived classes match the matrix.
  void compare_classes(const TopologyDescription& description) {
    Topology topology = build_topology(description, std::nullopt);
    for (std::size_t a = 0; a < gpus_; ++a)
      for (std::size_t b = a + 1; b < gpus_; ++b) {
        PathClass found = topology.rule(static_cast<Rank>(a), static_cast<Rank>(b)).path_class();
        const std::string& word = cell(a, b);
        if (found == PathClass::NVL && most_links() == 0) continue;  // NVLink was assumed
        std::string is = word == "NODE" ? "PHB" : word.starts_with("NV") ? "NVL" : word;
        if (is != text(found))
          doubts_.push_back(fmt::format("{}: {} and {} have {}, but the others imply {}", place(a),
                                        rows_[a].name, rows_[b].name, word, text(found)));
      }
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<Row> rows_;
  std::size_t read_ = 0, gpus_ = 0;
  bool cpu_column_ = false, numa_column_ = false;
  std::optional<UsersGpu> users_gpu_;
  std::optional<std::int32_t> named_;
  std::string unknown_;  // an unknown name
  std::int64_t pcie_ = 0, nic_ = 0;
  std::vector<std::int32_t> sockets_;
  NodeParts parts_;
  std::vector<std::string> doubts_;
};

}  // namespace

bool is_smi_matrix(std::string_view text) {
  std::string_view rest = after_byte_order_mark(text).substr(0, std::size_t{1} << 18);
  while (!rest.empty()) {
    std::string plain = without_escapes(take_line(rest));
    if (is_header(words_of(plain))) return true;
  }
  return false;
}

ReadTopology read_smi_matrix(std::string_view text, const std::string& file,
                             const std::optional<UsersGpu>& gpu) {
  return SmiReader(text, file, gpu).read();
}

}  // namespace reshard::sim
