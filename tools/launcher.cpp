// SPDX-License-Identifier: BSD-3-Clause
#include "tools/launcher.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>

namespace reshard::tools {

namespace {

std::optional<int> number(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return std::nullopt;
  std::string_view text(value);
  int out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

struct Variables {
  const char *rank, *count;
  bool starts_mpi;
};
// Job systems set torchrun's for a whole node: there all processes of an mpirun would take
// themselves for the same rank.
constexpr std::array<Variables, 4> kLaunchers{
    {{"RANK", "WORLD_SIZE", false},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", true},
     {"PMI_RANK", "PMI_SIZE", true},
     {"SLURM_PROCID", "SLURM_NTASKS", true}}};

std::optional<int> rank_of_launcher(std::string_view backend) {
  for (const Variables& launcher : kLaunchers) {
    if (backend == "mpi" && !launcher.starts_mpi) continue;
    std::optional<int> rank = number(launcher.rank), count = number(launcher.count);
    if (rank && count && *rank < *count) return rank;
  }
  return std::nullopt;
}

}  // namespace

bool is_launched(std::string_view backend) { return rank_of_launcher(backend).has_value(); }

int launched_rank(std::string_view backend) { return rank_of_launcher(backend).value_or(0); }

bool is_of_many(std::string_view backend) { return backend == "mpi" || backend == "nccl"; }

bool speaks_for_all(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "validate") return true;
  constexpr std::string_view kOption = "--backend=";
  return std::none_of(argv + 2, argv + argc, [&](std::string_view word) {
    if (word.substr(0, kOption.size()) == kOption) word.remove_prefix(kOption.size());
    return is_of_many(word) && launched_rank(word) > 0;
  });
}

void let_the_first_speak() { std::this_thread::sleep_for(std::chrono::milliseconds(500)); }

}  // namespace reshard::tools
