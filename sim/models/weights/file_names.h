// SPDX-License-Identifier: BSD-3-Clause
// Finds the weights that tensors of a checkpoint contain, by the names in its files.
//
// A file can have one tensor for each expert or one for all experts of a layer, and joined
// projections (gate and up; q, k and v).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/models/frameworks/parameters.h"
#include "sim/models/weights/model.h"

namespace reshard::sim {

// The elements of a weight in a box of a tensor of the file.
struct WeightPart {
  const Weight* weight;
  Box box;              // of the weight
  std::int64_t offset;  // of its first element in the row-major box of the file's tensor
  DimVector strides;    // by dim of the weight
};

class FileNames {
 public:
  // Keeps a reference to the model.
  explicit FileNames(const Model& model);

  struct Known {
    const ModelParameter* parameter;
    std::int64_t expert;  // -1: the tensor is not of a single expert
  };
  std::optional<Known> find(std::string_view name) const;
  // The weight whose scales have this name; none unless that weight is quantised.
  std::optional<Known> find_scaled(std::string_view scales) const;
  Shape shape_of(const Known& known) const;
  std::vector<WeightPart> parts_of(const Known& known, const Box& box) const;

 private:
  struct Block {
    const Weight* weight;
    std::int64_t begin, step;  // row i of the weight is row begin + step * i of the joined dim
  };
  std::vector<Block> blocks_of(const ModelParameter& parameter) const;

  const Model& model_;
  std::map<std::string, ModelParameter, std::less<>> parameters_;
};

// A tensor as a file lists it.
struct FileTensor {
  std::string name;
  std::optional<Shape> shape;       // none if only names are known
  std::string dtype_name = {};      // "BF16"; empty if it is not known
  std::optional<DType> dtype = {};  // none if it is not one of reshard's
};
// Throws InputError "PLACE: ..." for a name that no weight has, another shape, and a weight that no
// tensor has. Rotary caches are ignored; scales must be those of a quantised weight.
void check_file(const Model& model, const std::vector<FileTensor>& tensors,
                const std::string& place);

}  // namespace reshard::sim
