// SPDX-License-Identifier: BSD-3-Clause
// Operators against what PyTorch computes (tools/oracles/torch_operator_values.py wrote it), and
// what PyTorch does not say: names, refusals, identities of what is empty.
#include "sim/operators/operators.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/errors.h"

namespace reshard::sim {
namespace {

using Json = nlohmann::json;

OpValue value_of(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_boolean()) return OpValue(json.get<bool>());
  if (json.is_number_integer()) return OpValue(json.get<std::int64_t>());
  if (json.is_number()) return OpValue(json.get<double>());
  if (json.is_string()) return OpValue(json.get<std::string>());
  std::vector<OpValue> list;
  for (const Json& item : json) list.push_back(value_of(item));
  return OpValue(std::move(list));
}

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

// Inputs as the call wants them, and what holds them.
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

// PyTorch computes in f32, and rounds in between; this does not.
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
  if (expected.is_null() || !found)
    return expected.is_null() == !found ? "" : "one is absent";
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
    attributes.set(name, value_of(value));
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

}  // namespace
}  // namespace reshard::sim
