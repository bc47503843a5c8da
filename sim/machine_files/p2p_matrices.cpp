// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machine_files/p2p_matrices.h"

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/machine_files/matrix_words.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kMaxGpus = 256;

bool holds(std::string_view line, std::string_view word) {
  return line.find(word) != std::string_view::npos;
}

class P2pReader {
 public:
  P2pReader(std::string_view text, const std::string& file)
      : text_(after_byte_order_mark(text)), file_(file) {}

  P2pMatrices read() {
    while (next()) {
      if (line_.starts_with("Device: ")) read_device();
      if (!holds(line_, "Matrix")) continue;
      if (holds(line_, "Connectivity"))
        read_matrix(out_.reaches, Unit::Flag);
      else if (holds(line_, "Latency"))
        read_matrix(holds(line_, "P2P=Disabled") ? out_.latency_off : out_.latency, Unit::Us);
      else if (holds(line_, "Bandwidth") && !holds(line_, "P2P Reads"))
        read_matrix(bandwidths(), Unit::GBPerS);
    }
    if (!out_.one_way && !out_.one_way_off && !out_.both_ways && !out_.both_ways_off)
      fail("a bandwidth matrix, as printed by p2pBandwidthLatencyTest", "none");
    return std::move(out_);
  }

 private:
  enum class Unit { Flag, GBPerS, Us };

  [[noreturn]] void fail(std::string_view expected, const std::string& found) const {
    throw InputError(fmt::format("{}:{}: expected {}, found {}", file_,
                                 std::max<std::int64_t>(1, number_), expected, found));
  }

  bool next() {
    if (text_.empty()) return false;
    line_ = take_line(text_);
    ++number_;
    return true;
  }

  std::optional<P2pMatrix>& bandwidths() {
    bool off = holds(line_, "P2P=Disabled");
    if (holds(line_, "Unidirectional")) return off ? out_.one_way_off : out_.one_way;
    return off ? out_.both_ways_off : out_.both_ways;
  }

  // "Device: 0, NVIDIA GeForce RTX 3090, pciBusID: 1, ..."
  void read_device() {
    std::size_t begin = line_.find(", "), end = line_.find(", pciBusID");
    if (begin == std::string_view::npos || out_.names.size() == kMaxGpus) return;
    out_.names.emplace_back(line_.substr(
        begin + 2, end == std::string_view::npos ? end : end - std::min(end, begin + 2)));
  }

  // Reads the line of columns, then one row per GPU. A second matrix of the same kind is ignored.
  void read_matrix(std::optional<P2pMatrix>& into, Unit unit) {
    P2pMatrix matrix;
    matrix.line = number_;
    std::vector<std::string_view> words;
    do {
      if (!next()) fail("a matrix below its heading", "the end");
      words = words_of(line_);
    } while (words.empty());
    if (words[0] != "D\\D" && words[0] != "GPU")
      fail("the line D\\D or GPU of a matrix", quoted(line_));
    std::size_t size = words.size() - 1;
    if (size < 2 || size > kMaxGpus) fail("2 to 256 columns", std::to_string(size));
    if (out_.gpus > 0 && to_index(out_.gpus) != size)
      fail(fmt::format("{} columns, as above", out_.gpus), std::to_string(size));
    out_.gpus = matrix.size = static_cast<std::int32_t>(size);
    for (std::size_t row = 0; row < size; ++row) {
      if (!next()) fail(fmt::format("row {}", row), "the end");
      words = words_of(line_);
      if (words.size() != size + 1 || words[0] != std::to_string(row))
        fail(fmt::format("row {} of {} cells", row, size), quoted(line_));
      for (std::size_t column = 0; column < size; ++column)
        matrix.cells.push_back(row == column ? 0 : value(words[column + 1], unit));
    }
    if (!into) into = std::move(matrix);
  }

  std::int64_t value(std::string_view word, Unit unit) const {
    std::string place = fmt::format("{}:{}", file_, number_);
    switch (unit) {
      case Unit::Flag:
        if (word != "0" && word != "1") fail("0 or 1", quoted(word));
        return word == "1" ? 1 : 0;
      case Unit::GBPerS: {
        std::int64_t rate = parse_bytes_per_s(std::string(word) + "GB/s", place);
        if (rate > 1'000'000'000'000'000) fail("at most 1e6 GB/s", quoted(word));
        return rate;
      }
      case Unit::Us: {
        std::int64_t ps = parse_duration_ps(std::string(word) + "us", place);
        if (ps > kPsPerSecond * 1000) fail("a latency of at most 1000 s", quoted(word));
        return ps;
      }
    }
    return 0;
  }

  std::string_view text_, line_;
  const std::string& file_;
  std::int64_t number_ = 0;
  P2pMatrices out_;
};

std::int64_t mean(const P2pMatrix& of, std::int32_t a, std::int32_t b) {
  return (of.at(a, b) + of.at(b, a)) / 2;
}

const P2pMatrix* first(const std::optional<P2pMatrix>& one, const std::optional<P2pMatrix>& other) {
  return one ? &*one : other ? &*other : nullptr;
}

std::optional<std::int64_t> mean_of(const P2pMatrix* of, std::int32_t a, std::int32_t b) {
  if (of == nullptr) return std::nullopt;
  return mean(*of, a, b);
}

}  // namespace

bool P2pMatrices::direct(std::int32_t a, std::int32_t b) const {
  if (reaches) return reaches->at(a, b) == 1 && reaches->at(b, a) == 1;
  return one_way.has_value() || both_ways.has_value();
}

std::optional<std::int64_t> P2pMatrices::rate(std::int32_t a, std::int32_t b) const {
  return mean_of(first(one_way, one_way_off), a, b);
}
std::optional<std::int64_t> P2pMatrices::rate_of_both(std::int32_t a, std::int32_t b) const {
  return mean_of(first(both_ways, both_ways_off), a, b);
}
std::optional<std::int64_t> P2pMatrices::latency_ps(std::int32_t a, std::int32_t b) const {
  return mean_of(first(latency, latency_off), a, b);
}

bool is_p2p_matrices(std::string_view text) {
  std::string_view start = text.substr(0, std::size_t{1} << 18);
  return holds(start, "Bandwidth") && holds(start, "D\\D");
}

P2pMatrices parse_p2p_matrices(std::string_view text, const std::string& file) {
  return P2pReader(text, file).read();
}

}  // namespace reshard::sim
