// SPDX-License-Identifier: BSD-3-Clause
// The table of data-sheet figures by class of GPU.
#include "core/topology/gpu_figures.h"

#include <array>

namespace reshard {
namespace {

struct Class {
  std::int32_t compute_capability;  // this one and all up to the next class
  GpuFigures figures;
};

constexpr std::int64_t kGBps = 1'000'000'000, kTera = 1'000'000;
constexpr std::array<Class, 10> kClasses{
    {{60, {732 * kGBps, 5 * kTera, 10 * kTera, 21 * kTera}},
     {70, {900 * kGBps, 7'800'000, 15'700'000, 125 * kTera}},
     {75, {320 * kGBps, 254'000, 8'100'000, 65 * kTera}},
     {80, {2'039 * kGBps, 19'500'000, 19'500'000, 312 * kTera}},
     {86, {936 * kGBps, 556'000, 35'600'000, 71 * kTera}},
     {89, {864 * kGBps, 1'400'000, 91'600'000, 362 * kTera}},
     {90, {3'350 * kGBps, 66'900'000, 66'900'000, 989'400'000}},
     {100, {8'000 * kGBps, 40 * kTera, 80 * kTera, 2'250 * kTera}},
     {103, {8'000 * kGBps, 1'300'000, 80 * kTera, 2'500 * kTera}},
     {120, {1'792 * kGBps, 1'970'000, 126 * kTera, 504 * kTera}}}};

const GpuFigures& figures_of(std::int32_t compute_capability) {
  const Class* found = &kClasses.front();
  for (const Class& each : kClasses)
    if (each.compute_capability <= compute_capability) found = &each;
  return found->figures;
}

}  // namespace

std::int64_t usual_figure(Figure which, std::int32_t compute_capability) {
  const GpuFigures& gpu = figures_of(compute_capability);
  switch (which) {
    case Figure::GpuMemory:
      return gpu.memory_bytes_per_s;
    // Figures are in millionths of 10^12 operations per second, that is in 10^6.
    case Figure::GpuF64:
      return gpu.mega_f64;
    case Figure::GpuF32:
      return gpu.mega_f32;
    case Figure::GpuF16:
      return gpu.mega_f16;
    default:
      return 0;
  }
}

std::optional<GpuFigures> gpu_figures(const Machine& machine) {
  if (!machine.compute_capability) return std::nullopt;
  auto figure = [&](Figure which) {
    return machine.figure(which).value_or(usual_figure(which, *machine.compute_capability));
  };
  return GpuFigures{figure(Figure::GpuMemory), figure(Figure::GpuF64), figure(Figure::GpuF32),
                    figure(Figure::GpuF16)};
}

}  // namespace reshard
