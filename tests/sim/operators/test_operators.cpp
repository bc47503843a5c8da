// SPDX-License-Identifier: BSD-3-Clause
// Compares operators with PyTorch's results (written by tests/torch/oracle/write_data.py), and
// tests what PyTorch does not specify: names, refusals, and identities of empty reductions.
#include "sim/operators/operators.h"

#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/errors.h"
#include "core/pattern/pattern.h"
#include "sim/trace/op_values.h"
#include "tests/support/operators/rare_rows.h"
#include "tests/support/pinned.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

[[maybe_unused]] const bool kRare = add_rare_rows();

double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  std::string text = json.get<std::string>();
  return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : NAN;
}

Array array_of(const Json& json) {
  Shape shape;
  for (const Json& extent : json.at("s")) shape.push_back(extent.get<std::int64_t>());
  DType dtype = parse_dtype(json.at("d").get<std::string>());
  if (is_real(dtype)) {
    std::vector<double> values;
    for (const Json& value : json.at("v")) values.push_back(number_of(value));
    return Array::of(dtype, shape, values);
  }
  return Array::of(dtype, shape, json.at("v").get<std::vector<std::int64_t>>());
}

// A call's inputs, and the arrays that they refer to.
struct Inputs {
  std::deque<Array> arrays;
  std::vector<ArrayArgument> arguments;

  const Array* add(const Json& json) {
    if (json.is_null()) return nullptr;
    arrays.push_back(array_of(json));
    return &arrays.back();
  }
  explicit Inputs(const Json& json) {
    for (const Json& input : json) {
      ArrayArgument argument{input.is_array(), {}};
      if (input.is_array()) {
        for (const Json& item : input) argument.arrays.push_back(add(item));
      } else {
        argument.arrays.push_back(add(input));
      }
      arguments.push_back(std::move(argument));
    }
  }
};

// PyTorch computes in f32 and rounds intermediate results; this code does not.
bool is_near(double found, double expected, DType dtype) {
  if (std::isnan(expected)) return std::isnan(found);
  if (found == expected) return true;
  double relative = dtype == DType::F64    ? 1e-9
                    : dtype == DType::BF16 ? 0.017
                    : dtype == DType::F16  ? 0.003
                                           : 3e-5;
  return std::fabs(found - expected) <= relative * std::fmax(std::fabs(expected), 0.1);
}

std::string difference(const std::optional<Array>& found, const Json& expected) {
  if (expected.is_null() || !found) return expected.is_null() == !found ? "" : "one is absent";
  Array wanted = array_of(expected);
  if (found->dtype != wanted.dtype) return "dtype " + std::string(text(found->dtype));
  if (found->shape != wanted.shape) return "shape [" + text(found->shape) + "]";
  if (!is_real(found->dtype)) return found->elements == wanted.elements ? "" : "values";
  std::vector<double> a = values<double>(*found), b = values<double>(wanted);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!is_near(a[i], b[i], found->dtype))
      return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " +
             std::to_string(b[i]);
  return "";
}

std::string difference(const Json& line) {
  Inputs inputs(line.at("in"));
  OpAttributes attributes;
  for (const auto& [name, value] : line.at("attr").items())
    attributes.set(name, op_value_of(value));
  try {
    ArrayResults found =
        compute(line.at("name").get<std::string>(), inputs.arguments, attributes, {});
    const Json& expected = line.at("out");
    if (found.size() != expected.size()) return std::to_string(found.size()) + " outputs";
    for (std::size_t i = 0; i < found.size(); ++i) {
      std::string what = difference(found[i], expected[i]);
      if (!what.empty()) return "output " + std::to_string(i) + ": " + what;
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::vector<Json> torch_cases() {
  std::ifstream file("tests/torch/data/operator_values.jsonl");
  std::vector<Json> out;
  for (std::string line; std::getline(file, line);) {
    Json json = Json::parse(line);
    if (json.contains("name")) out.push_back(std::move(json));
  }
  return out;
}

TEST_CASE("operators compute what PyTorch computes") {
  std::vector<Json> cases = torch_cases();
  std::set<std::string> names;
  for (const Json& line : cases) {
    names.insert(line.at("name").get<std::string>());
    std::string what = difference(line);
    if (!what.empty()) FAIL_CHECK(line.dump().substr(0, 600) << "\n  " << what);
  }
  CHECK(cases.size() > 500);
  CHECK(names.size() > 300);
}

// A correct call with one change.
void spoil(Inputs& inputs, OpAttributes& attributes, std::uint64_t draw) {
  auto next = [&](std::uint64_t below) {
    draw = mix(draw);
    return draw % below;
  };
  std::vector<std::int64_t> odd{-9,
                                -3,
                                -2,
                                -1,
                                0,
                                1,
                                2,
                                3,
                                5,
                                100,
                                std::int64_t{1} << 40,
                                std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max()};
  auto number = [&] { return OpValue(odd[next(odd.size())]); };
  if (!inputs.arrays.empty() && next(2)) {
    Array& array = inputs.arrays[next(inputs.arrays.size())];
    constexpr std::array kDTypes{DType::F32, DType::I64, DType::Bool, DType::BF16, DType::U8};
    Shape shape;
    for (std::uint64_t d = next(5); d > 0; --d) shape.push_back(static_cast<std::int64_t>(next(4)));
    std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
    for (double& value : values) value = static_cast<double>(next(9)) - 3;
    array = Array::of(next(3) ? array.dtype : kDTypes[next(kDTypes.size())], shape, values);
  }
  if (!attributes.all().empty() && next(2)) {
    auto [name, value] = attributes.all()[next(attributes.all().size())];
    if (value.kind == OpValue::Kind::List && next(3)) {
      std::uint64_t size = next(value.list.size() + 3);  // before what fills it
      value.list.resize(size, number());
      if (!value.list.empty()) value.list[next(value.list.size())] = number();
    } else {
      value = next(8) ? number() : OpValue("nonsense");
    }
    attributes.set(name, value);
  }
  if (next(6) == 0 && !inputs.arguments.empty()) inputs.arguments.pop_back();
  if (next(6) == 0 && !inputs.arguments.empty()) inputs.arguments[0].is_list ^= true;
  if (next(6) == 0 && !inputs.arguments.empty())
    inputs.arguments[next(inputs.arguments.size())].arrays.assign(1, nullptr);
}

// To four digits, because mathematics libraries differ in later ones.
std::string text_of(const ArrayResults& results) {
  std::string out;
  for (const auto& made : results) {
    if (!made) out += " -";
    if (!made) continue;
    std::vector<double> all = values<double>(*made);
    RESHARD_CHECK(all.size() == std::size_t(made->count()), "");
    out += fmt::format(" {}[{}]", text(made->dtype), text(made->shape));
    for (double value : all)
      out += std::isnan(value) ? std::string(" nan") : fmt::format(" {:.4g}", value);
  }
  return out;
}

// Pins which calls are refused and which are computed, but not which of several faults is named:
// that can depend on the order in which a compiler evaluates arguments.
TEST_CASE("calls that make no sense are refused, or computed, and end") {
  int refused = 0, computed = 0;
  std::uint64_t draw = 0;
  test::Pinned pinned("tests/sim/operators/data/spoilt_calls.txt", 40);
  for (const Json& line : torch_cases())
    for (int i = 0; i < 40; ++i) {
      Inputs inputs(line.at("in"));
      OpAttributes attributes;
      for (const auto& [name, value] : line.at("attr").items())
        attributes.set(name, op_value_of(value));
      spoil(inputs, attributes, ++draw);
      try {
        pinned.add(
            text_of(compute(line.at("name").get<std::string>(), inputs.arguments, attributes, {})));
        ++computed;
      } catch (const InputError&) {
        pinned.add("refused");
        ++refused;
      } catch (const std::exception& error) {
        FAIL_CHECK(line.at("name") << " " << error.what() << " draw " << draw);
      }
    }
  pinned.finish();
  CHECK(refused > 5000);
  CHECK(computed > 5000);
}

}  // namespace
}  // namespace reshard::sim
