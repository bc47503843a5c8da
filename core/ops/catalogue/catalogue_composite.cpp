// SPDX-License-Identifier: BSD-3-Clause
// Operators that PyTorch decomposes above dispatch, and that reach dispatch whole only in inference
// mode. DTensor then follows their steps, which are written as in catalogue_decomposed.cpp.
// Alternative names of operators are in other_names.cpp.
#include "core/ops/rules/rules.h"

namespace reshard {

const std::string_view kCompositeOperators = R"(
steps  layer_norm  input weight? bias? ; normalized_shape eps cudnn_enable :=
       native_layer_norm input weight bias $normalized_shape $eps=1e-05
steps  rms_norm                                      input weight? ; normalized_shape eps
steps  kl_div  self target ; reduction log_target :=
       ?log_target loss = mul.Tensor (exp target) (sub.Tensor target self) |
       !log_target loss = sub.Tensor (xlogy.Tensor target target) (mul.Tensor target self) |
       reduced loss
steps  l1_loss  self target ; reduction := reduced (abs (sub.Tensor self target))
steps  dropout                                       input ; p train
steps  pairwise_distance  x1 x2 ; p eps keepdim :=
       near = add.Tensor (sub.Tensor x1 x2) other:$eps=1e-06 |
       linalg_vector_norm near ord:$p=2.0 dim:[-1] $keepdim
steps  special_ndtr  self :=
       grown = add.Tensor (erf (mul.Tensor self other:0.7071067811865476)) other:1 |
       mul.Tensor grown other:0.5
steps  nanmean  self ; dim keepdim dtype :=
       count = sum.dim_IntList (logical_not (ne.Tensor self self)) $dim $keepdim |
       div.Tensor (nansum self $dim $keepdim $dtype) count
steps  var.dim  self ; dim unbiased keepdim :=
       ?unbiased=true var.correction self $dim correction:1 $keepdim |
       !unbiased=true var.correction self $dim correction:0 $keepdim
steps  std.dim  self ; dim unbiased keepdim :=
       ?unbiased=true std.correction self $dim correction:1 $keepdim |
       !unbiased=true std.correction self $dim correction:0 $keepdim
steps  var_mean.dim  self ; dim unbiased keepdim :=
       ?unbiased=true var_mean.correction self $dim correction:1 $keepdim |
       !unbiased=true var_mean.correction self $dim correction:0 $keepdim -> *
steps  argsort  self ; dim descending := values,places = sort self $dim $descending -> places
steps  argsort.stable  self ; stable dim descending :=
       values,places = sort.stable self $stable $dim $descending -> places
steps  msort  self := sort self dim:0
steps  outer  self vec2 := mul.Tensor (unsqueeze self dim:1) vec2
steps  diff                                          self ; n dim
steps  repeat_interleave.self_int                    self ; repeats dim output_size
steps  split.sizes  self ; split_size dim :=
       split_with_sizes self split_sizes:$split_size $dim -> *
steps  unsafe_chunk  self ; chunks dim := chunk self $chunks $dim -> *
steps  flipud  self := flip self dims:[0]
steps  fliplr  self := flip self dims:[1]
steps  resolve_conj,resolve_neg,data  self := alias self
steps  _weight_norm  v g ; dim := _weight_norm_interface v g dim:$dim=0
steps  max_pool2d  self ; kernel_size stride padding dilation ceil_mode :=
       max_pool2d_with_indices self $kernel_size $stride $padding $dilation $ceil_mode
steps  max_pool3d  self ; kernel_size stride padding dilation ceil_mode :=
       max_pool3d_with_indices self $kernel_size $stride $padding $dilation $ceil_mode
steps  adaptive_avg_pool2d,adaptive_avg_pool3d       self ; output_size
steps  conv1d  input weight bias? ; stride padding dilation groups :=
       convolution input weight bias $stride=[1] $padding=[0] $dilation=[1] transposed:false
       output_padding:[0] $groups=1
steps  conv2d  input weight bias? ; stride padding dilation groups :=
       convolution input weight bias $stride=[1,1] $padding=[0,0] $dilation=[1,1] transposed:false
       output_padding:[0,0] $groups=1
steps  conv3d  input weight bias? ; stride padding dilation groups :=
       convolution input weight bias $stride=[1,1,1] $padding=[0,0,0] $dilation=[1,1,1]
       transposed:false output_padding:[0,0,0] $groups=1
steps  conv_transpose1d  input weight bias? ; stride padding output_padding groups dilation :=
       convolution input weight bias $stride=[1] $padding=[0] $dilation=[1] transposed:true
       $output_padding=[0] $groups=1
steps  conv_transpose2d.input  input weight bias? ; stride padding output_padding groups dilation
       := convolution input weight bias $stride=[1,1] $padding=[0,0] $dilation=[1,1]
       transposed:true $output_padding=[0,0] $groups=1
steps  linalg_det  A := _linalg_det A
steps  linalg_slogdet  A := sign,log,lu,pivots = _linalg_slogdet A -> sign log
steps  linalg_eigh  A ; UPLO := _linalg_eigh A $UPLO -> *
steps  linalg_svd  A ; full_matrices driver :=
       _linalg_svd A full_matrices:$full_matrices=true $driver -> *
steps  linalg_svdvals  A ; driver := u,s,vh = _linalg_svd A $driver -> s
steps  matrix_exp  self := linalg_matrix_exp self
steps  lu_solve  self LU_data LU_pivots := linalg_lu_solve LU_data LU_pivots self
)";

}  // namespace reshard
