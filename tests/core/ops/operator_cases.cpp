// SPDX-License-Identifier: BSD-3-Clause
#include "tests/core/ops/operator_cases.h"

#include "core/ops/operator.h"

namespace reshard::test {
namespace {

OpPlacement placement_of(const std::string& word) {
  if (word.starts_with("_NormP(")) return OpPlacement::norm_partial(std::stod(word.substr(7)));
  if (word.starts_with("MaskP(")) {
    std::size_t open = word.find('['), close = word.find(']');
    Shape shape = parse_shape(word.substr(open + 1, close - open - 1));
    return OpPlacement::mask_partial(shape, std::stoi(word.substr(word.rfind(',') + 1)));
  }
  return OpPlacement(parse_placements(word, 1, kMaxDims, "placement").placements[0]);
}

}  // namespace

OpPlacements parse_op_placements(const std::string& text) {
  OpPlacements out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] != 'R') {
      int depth = 0;
      for (end = text.find('(', at); end < text.size(); ++end) {
        depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
        if (depth == 0) break;
      }
      ++end;
    }
    out.push_back(placement_of(text.substr(at, end - at)));
    at = end;
  }
  return out;
}

OpValue op_value(const nlohmann::json& value) {
  if (value.is_boolean()) return OpValue(value.get<bool>());
  if (value.is_number_integer()) return OpValue(value.get<std::int64_t>());
  if (value.is_number()) return OpValue(value.get<double>());
  if (value.is_string()) return OpValue(value.get<std::string>());
  if (!value.is_array()) return {};
  std::vector<OpValue> list;
  for (const nlohmann::json& item : value) list.push_back(op_value(item));
  return OpValue(std::move(list));
}

OperatorCase operator_case(const std::string& line) {
  nlohmann::json json = nlohmann::json::parse(line);
  OperatorCase out;
  out.text = line;
  out.name = json["call"];
  out.mesh = json["mesh"];
  out.call.op = &find_operator(out.name);
  auto tensor = [&](const nlohmann::json& entry) -> const TensorSpec* {
    if (entry.is_null()) return nullptr;
    Shape shape;
    for (std::int64_t size : entry["shape"]) shape.push_back(size);
    out.specs.push_back(
        std::make_unique<TensorSpec>(TensorSpec{{shape, call_dtype(std::string(entry["dtype"]))},
                                                parse_op_placements(entry["placements"]),
                                                entry.value("of_view", false)}));
    return out.specs.back().get();
  };
  for (const nlohmann::json& entry : json["in"]) {
    OpArgument& argument = out.call.arguments.emplace_back();
    argument.is_list = entry.is_array();
    if (!entry.is_array()) argument.tensors.push_back(tensor(entry));
    if (entry.is_array())
      for (const nlohmann::json& item : entry) argument.tensors.push_back(tensor(item));
  }
  if (json.contains("attr"))
    for (const auto& [name, value] : json["attr"].items())
      out.call.attributes.set(name, op_value(value));
  out.call.loss_parallel = json.value("loss_parallel", false);
  const nlohmann::json& expect = json["expect"];
  out.refused = expect.contains("refused");
  if (out.refused) return out;
  auto texts = [](const nlohmann::json& list) {
    std::vector<std::string> texts;
    for (const nlohmann::json& item : list)
      texts.push_back(item.is_null() ? "-" : item.get<std::string>());
    return texts;
  };
  out.in = texts(expect["in"]);
  out.out = texts(expect["out"]);
  out.candidates = expect.value("candidates", std::int64_t{0});
  out.ties = expect.value("ties", std::int64_t{0});
  out.handled = expect.value("handler", false);
  if (out.handled) out.collectives = expect["collectives"].get<std::map<std::string, int>>();
  if (expect.contains("cost_us") && !expect["cost_us"].is_null())
    out.cost_us = expect["cost_us"].get<double>();
  for (const nlohmann::json& shape : expect.value("out_shape", nlohmann::json::array()))
    out.shapes.push_back(shape.is_null() ? "-" : shape.dump());
  for (const nlohmann::json& dtype : expect.value("out_dtype", nlohmann::json::array()))
    out.dtypes.emplace_back(dtype.is_null() ? "-" : text(call_dtype(dtype.get<std::string>())));
  return out;
}

}  // namespace reshard::test
