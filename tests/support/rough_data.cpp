// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/rough_data.h"

#include <cstring>

#include "core/base/errors.h"
#include "core/pattern/pattern.h"
#include "tests/support/oracle.h"

namespace reshard::test {
namespace {

// Finite values of moderate size with full significands, so that sums round, and differently in
// every order.
std::uint64_t rough_bits(Prng& prng, DType dtype) {
  auto with = [&](int significand, std::uint64_t bias) {
    std::uint64_t exponent = bias + static_cast<std::uint64_t>(prng.below(5)),
                  sign = prng.next() & 1;
    return (sign << (dtype == DType::F64   ? 11
                     : dtype == DType::F16 ? 5
                                           : 8) |
            exponent)
               << significand |
           (prng.next() & ((std::uint64_t{1} << significand) - 1));
  };
  switch (dtype) {
    case DType::F64:
      return with(52, 1021);
    case DType::F32:
      return with(23, 125);
    case DType::F16:
      return with(10, 13);
    case DType::BF16:
      return with(7, 125);
    case DType::C64: {
      std::uint64_t imaginary = with(23, 125);
      return imaginary << 32 | with(23, 125);
    }
    default:
      return dtype == DType::Bool ? prng.next() & 1 : prng.next();
  }
}

}  // namespace

Shards rough_sources(Prng& prng, const Request& request) {
  std::vector<std::vector<std::uint64_t>> addends(
      static_cast<std::size_t>(request.fold().addend_count));
  for (std::vector<std::uint64_t>& tensor : addends)
    for (std::int64_t i = 0; i < element_count(request.shape()); ++i)
      tensor.push_back(rough_bits(prng, request.dtype()));
  Shards out;
  auto width = static_cast<std::size_t>(size_bytes(request.dtype()));
  for (std::int32_t p = 0; p < request.source().mesh().size(); ++p) {
    std::vector<std::byte>& bytes = out[request.source().mesh().rank_at(p)];
    for (std::int64_t index : held_elements(request.source(), p)) {
      const std::vector<std::uint64_t>& addend =
          addends[static_cast<std::size_t>(request.addend_of(p))];
      std::uint64_t bits = index < 0 ? 0 : addend[static_cast<std::size_t>(index)];
      bytes.resize(bytes.size() + width);
      std::memcpy(bytes.data() + bytes.size() - width, &bits, width);
    }
  }
  return out;
}

Shards pattern_sources(const Request& request) {
  Pattern pattern(request);
  Shards out;
  const Layout& layout = request.source();
  for (std::int32_t p = 0; p < layout.mesh().size(); ++p) {
    std::vector<std::byte>& bytes = out[layout.mesh().rank_at(p)];
    bytes.resize(static_cast<std::size_t>(element_count(layout.local_shape(p)) *
                                          size_bytes(request.dtype())));
    pattern.fill(layout, p, request.addend_of(p), bytes);
  }
  return out;
}

void fill(PreparedPlan& prepared, const Shards& sources, TensorId tensor) {
  prepared.fill(
      [&](Rank rank, std::span<std::byte> bytes) {
        const std::vector<std::byte>& shard = sources.at(rank);
        RESHARD_CHECK(shard.size() == bytes.size(), "source shard size");
        if (!shard.empty()) std::memcpy(bytes.data(), shard.data(), shard.size());
      },
      tensor);
}

void run_once(Executor& executor, const Plan& plan, const FillSource& fill,
              const TakeDestination& take) {
  std::unique_ptr<PreparedPlan> prepared = executor.prepare(plan);
  prepared->fill(fill);
  prepared->run();
  prepared->take(take);
}

std::vector<Shards> moved(Executor& executor, const Plan& plan,
                          const std::vector<Shards>& sources) {
  std::unique_ptr<PreparedPlan> prepared = executor.prepare(plan);
  std::vector<Shards> out(sources.size());
  auto tensor = [](std::size_t t) { return TensorId{static_cast<std::int32_t>(t)}; };
  for (std::size_t t = 0; t < sources.size(); ++t) fill(*prepared, sources[t], tensor(t));
  prepared->run();
  for (std::size_t t = 0; t < sources.size(); ++t)
    prepared->take(
        [&](Rank rank, std::span<const std::byte> bytes) {
          out[t][rank].assign(bytes.begin(), bytes.end());
        },
        tensor(t));
  return out;
}

Shards moved(Executor& executor, const Plan& plan, const Shards& sources) {
  return moved(executor, plan, std::vector{sources}).front();
}

}  // namespace reshard::test
