// SPDX-License-Identifier: BSD-3-Clause
// Operators that are followed through what they are taken apart into (decompositions/).
#include "core/ops/rules/rules.h"

namespace reshard {

const std::string_view kDecomposedOperators = R"(
steps  mse_loss,soft_margin_loss                     self target ; reduction
steps  mse_loss_backward,soft_margin_loss_backward   grad_output self target ; reduction
steps  smooth_l1_loss                                self target ; reduction beta
steps  smooth_l1_loss_backward                       grad_output self target ; reduction beta
steps  huber_loss                                    self target ; reduction delta
steps  huber_loss_backward                           grad_output self target ; reduction delta
steps  binary_cross_entropy                          self target weight? ; reduction
steps  binary_cross_entropy_backward                 grad_output self target weight? ; reduction
steps  binary_cross_entropy_with_logits  self target weight? pos_weight? ; reduction
steps  log_sigmoid_forward                           self
steps  floor_divide                                  self other?
steps  floor_divide.Scalar                           self ; other
steps  rsub.Tensor                                   self other ; alpha
steps  _prelu_kernel                                 self weight
steps  rrelu_with_noise_backward  grad_output self noise ; lower upper training self_is_result
steps  glu                                           self ; dim
steps  glu_backward                                  grad_output self ; dim
steps  count_nonzero                                 self ; dim
steps  count_nonzero.dim_IntList                     self ; dim
steps  aminmax                                       self ; dim keepdim
steps  norm.ScalarOpt_dim                            self ; p dim keepdim
steps  norm.ScalarOpt_dim_dtype                      self ; p dim keepdim dtype
steps  norm.ScalarOpt_dtype                          self ; p dtype
steps  std_mean.correction                           self ; dim correction keepdim
steps  dist                                          self other ; p
steps  trace                                         self
steps  vdot                                          self other
steps  addr                                          self vec1 vec2 ; beta alpha
steps  addmv                                         self mat vec ; beta alpha
steps  _addmm_activation                             self mat1 mat2 ; beta alpha use_gelu
steps  polar                                         abs angle
steps  take                                          self index
steps  rot90                                         self ; k dims
steps  pixel_shuffle                                 self ; upscale_factor
steps  pixel_unshuffle                               self ; downscale_factor
steps  channel_shuffle                               self ; groups
steps  narrow_copy                                   self ; dim start length
steps  unbind_copy.int                               self ; dim
steps  isin.Tensor_Tensor                            elements test_elements ; assume_unique invert
steps  isin.Tensor_Scalar                            elements ; test_element assume_unique invert
)";

}  // namespace reshard
