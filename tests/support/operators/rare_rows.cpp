// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {

bool add_rare_rows() {
  for (std::span<const OperatorRow> rows : {choosing_rows(),
                                            diagonal_rows(),
                                            einsum_rows(),
                                            extreme_rows(),
                                            fourier_rows(),
                                            grouped_rows(),
                                            linalg_rows(),
                                            max_unpooling_rows(),
                                            optimizer_rows(),
                                            padding_rows(),
                                            pair_loss_rows(),
                                            pointwise_gamma_rows(),
                                            pointwise_polynomial_rows(),
                                            pointwise_special_rows(),
                                            rare_backward_rows(),
                                            rare_binary_rows(),
                                            rare_unary_rows(),
                                            rare_view_rows(),
                                            resampling_rows(),
                                            scan_rows()})
    add_operator_rows(rows);
  return true;
}

}  // namespace reshard::sim
