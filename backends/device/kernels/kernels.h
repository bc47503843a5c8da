// SPDX-License-Identifier: BSD-3-Clause
// The kernels, one source for two Thrust systems: kernels_cuda.cu compiles it for the GPU, and
// kernels_host.cpp for the CPU, for tests on machines without a GPU. There is one thread per lane
// of every tile; copy_lane.h and fold_lane.h define what it does.
#pragma once

#include <cstdint>
#include <type_traits>

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include "backends/device/device.h"
#include "backends/device/kernels/copy_lane.h"
#include "backends/device/kernels/fold_lane.h"

namespace reshard::backends::kernels {

inline int log2_of(int lanes) {
  int log2 = 0;
  while (1 << log2 < lanes) ++log2;
  return log2;
}

template <class Policy, class Lane>
void for_each_lane(const Policy& policy, std::int64_t tiles, const Lane& lane) {
  thrust::for_each_n(policy, thrust::counting_iterator<std::int64_t>(0), tiles << lane.log2_lanes,
                     lane);
}

// `policy` is Thrust's execution policy: where to run, and on which stream.
template <class Policy>
void copy(const Policy& policy, const CopyLaunch& launch) {
  auto run = [&](auto bytes) {
    for_each_lane(
        policy, launch.count,
        CopyLane<decltype(bytes)::value>{launch.tiles, launch.lanes, log2_of(launch.lanes)});
  };
  switch (launch.unit_bytes) {
    case 16:
      return run(std::integral_constant<int, 16>{});
    case 8:
      return run(std::integral_constant<int, 8>{});
    case 4:
      return run(std::integral_constant<int, 4>{});
    case 2:
      return run(std::integral_constant<int, 2>{});
    default:
      return run(std::integral_constant<int, 1>{});
  }
}

template <class T, class Policy>
void fold_elements(const Policy& policy, const FoldLaunch& launch) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(T));
  int log2_lanes = log2_of(launch.lanes);
  if (launch.unit_bytes == 16)
    for_each_lane(
        policy, launch.count,
        FoldLane<T, kWide>{launch.tiles, launch.lanes, log2_lanes, launch.op, launch.divisor});
  else
    for_each_lane(
        policy, launch.count,
        FoldLane<T, 1>{launch.tiles, launch.lanes, log2_lanes, launch.op, launch.divisor});
}

template <class Policy>
void fold(const Policy& policy, const FoldLaunch& launch) {
  switch (launch.dtype) {
    case DType::F64:
      return fold_elements<double>(policy, launch);
    case DType::F32:
      return fold_elements<float>(policy, launch);
    case DType::F16:
      return fold_elements<Eigen::half>(policy, launch);
    case DType::BF16:
      return fold_elements<Eigen::bfloat16>(policy, launch);
    case DType::I64:
      return fold_elements<std::int64_t>(policy, launch);
    case DType::I32:
      return fold_elements<std::int32_t>(policy, launch);
    case DType::I16:
      return fold_elements<std::int16_t>(policy, launch);
    case DType::I8:
      return fold_elements<std::int8_t>(policy, launch);
    case DType::U8:
      return fold_elements<std::uint8_t>(policy, launch);
    case DType::Bool:
      return fold_elements<elements::Truth>(policy, launch);
    case DType::C64:
      return fold_elements<elements::Complex>(policy, launch);
    case DType::F8E4M3:
    case DType::F8E5M2:
      return;
  }
}

}  // namespace reshard::backends::kernels
