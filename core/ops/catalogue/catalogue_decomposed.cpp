// SPDX-License-Identifier: BSD-3-Clause
// Operators that are followed through the steps of their decomposition: steps written here
// (decompositions/written_steps.h), or produced by a function (decompositions/).
#include "core/ops/rules/rules.h"

namespace reshard {

const std::string_view kDecomposedOperators = R"(
steps  mse_loss,mse_loss.out>  self target ; reduction :=
       reduced (pow.Tensor_Scalar (sub.Tensor self target) exponent:2)
steps  mse_loss_backward,mse_loss_backward.grad_input>  grad_output self target ; reduction
steps  soft_margin_loss_backward  grad_output self target ; reduction
steps  soft_margin_loss,soft_margin_loss.out>  self target ; reduction :=
       reduced (log1p (exp (mul.Tensor (neg self) target)))
steps  smooth_l1_loss,smooth_l1_loss.out>  self target ; reduction beta
steps  smooth_l1_loss_backward  grad_output self target ; reduction beta
steps  huber_loss,huber_loss.out>  self target ; reduction delta
steps  huber_loss_backward  grad_output self target ; reduction delta
steps  binary_cross_entropy,binary_cross_entropy.out>  self target weight? ; reduction :=
       least = new_full self size:[] fill_value:-100 |
       no = mul.Tensor (sub.Tensor target other:1) (maximum (log1p (neg self)) least) |
       loss = sub.Tensor no (mul.Tensor target (maximum (log self) least)) |
       ?weight loss = mul.Tensor loss weight | reduced loss
steps  binary_cross_entropy_backward  grad_output self target weight? ; reduction
steps  binary_cross_entropy_with_logits,binary_cross_entropy_with_logits.out>
       self target weight? pos_weight? ; reduction :=
       no = mul.Tensor (rsub.Scalar target other:1) self | yes = log_sigmoid_forward self |
       ?pos_weight more = mul.Tensor (sub.Tensor pos_weight other:1) target |
       ?pos_weight yes = mul.Tensor (add.Tensor more other:1) yes |
       loss = sub.Tensor no yes | ?weight loss = mul.Tensor loss weight | reduced loss
steps  log_sigmoid_forward,log_sigmoid_forward.output>  self :=
       least = minimum (new_zeros self size:[]) self | small = exp (neg (abs self)) |
       out = sub.Tensor least (log1p small) -> out small
steps  floor_divide,floor_divide.out>  self other? :=
       div.Tensor_mode self other $other rounding_mode:floor
steps  floor_divide.Scalar,floor_divide.Scalar_out>  self ; other :=
       div.Tensor_mode self $other rounding_mode:floor
steps  rsub.Tensor,rsub.Tensor_out>  self other ; alpha := sub.Tensor other self $alpha
steps  _prelu_kernel  self weight :=
       where.self (gt.Scalar self other:0) self (mul.Tensor weight self)
steps  rrelu_with_noise_backward  grad_output self noise ; lower upper training self_is_result
steps  glu  self ; dim
steps  glu_backward  grad_output self ; dim
steps  count_nonzero,count_nonzero.out>,count_nonzero.dim_IntList,count_nonzero.dim_IntList_out>
       self ; dim := sum.dim_IntList (ne.Scalar self other:0) $dim
steps  all.dims,all.dims_out>  self ; dim keepdim :=
       logical_not (any.dims (logical_not self) $dim $keepdim)
steps  aminmax,aminmax.out>  self ; dim keepdim :=
       least = amin self $dim $keepdim | largest = amax self $dim $keepdim -> least largest
steps  norm.ScalarOpt_dim,norm.out>,norm.ScalarOpt_dim_dtype,norm.dtype_out>,norm.ScalarOpt_dtype
       self ; p dim keepdim dtype := linalg_vector_norm self ord:$p=2 $dim $keepdim $dtype
steps  std_mean.correction,std_mean.correction_out>  self ; dim correction keepdim :=
       var,mean = var_mean.correction self $dim $correction $keepdim | std = sqrt var -> std mean
steps  dist,dist.out>  self other ; p := norm.Scalar (sub.Tensor self other) p:$p=2
steps  trace,trace.out>  self
steps  vdot,vdot.out>  self other := dot self other
steps  addr,addr.out>  self vec1 vec2 ; beta alpha
steps  addmv,addmv.out>  self mat vec ; beta alpha
steps  _addmm_activation  self mat1 mat2 ; beta alpha use_gelu
steps  _euclidean_dist  x1 x2 :=
       one = sum.dim_IntList (pow.Tensor_Scalar x1 exponent:2) dim:[-1] keepdim:true |
       two = sum.dim_IntList (pow.Tensor_Scalar x2 exponent:2) dim:[-1] keepdim:true |
       beside_one = ones_like one | beside_two = ones_like two |
       scaled = mul.Tensor x1 other:-2 | left = cat [scaled,one,beside_one] dim:-1 |
       right = cat [x2,beside_two,two] dim:-1 |
       sqrt (clamp_min (matmul left (transpose.int right dim0:-2 dim1:-1)) min:0)
steps  _weight_norm_interface  v g ; dim
steps  polar,polar.out>  abs angle :=
       complex (mul.Tensor abs (cos angle)) (mul.Tensor abs (sin angle))
steps  take,take.out>  self index := index.Tensor (view self size:[-1]) [index]
steps  rot90  self ; k dims
steps  pixel_shuffle,pixel_shuffle.out>  self ; upscale_factor
steps  pixel_unshuffle,pixel_unshuffle.out>  self ; downscale_factor
steps  channel_shuffle,channel_shuffle.out>  self ; groups
steps  narrow_copy,narrow_copy.out>  self ; dim start length
steps  unbind_copy.int  self ; dim
steps  isin.Tensor_Tensor,isin.Tensor_Tensor_out>  elements test_elements ; assume_unique invert
steps  isin.Tensor_Scalar,isin.Tensor_Scalar_out>  elements ; test_element assume_unique invert
steps  lift,lift_fresh  self := alias self
steps  alias_copy,alias_copy.out>  self := clone (alias self)
steps  fill.Scalar  self ; value := full_like self fill_value:$value
steps  zero  self := zeros_like self
steps  diagonal_backward  grad_output ; input_sizes offset dim1 dim2 :=
       diagonal_scatter (new_zeros grad_output size:$input_sizes) grad_output $offset $dim1 $dim2
steps  cudnn_batch_norm  input weight bias? running_mean? running_var? ; training
       exponential_average_factor epsilon :=
       out,mean,rstd = native_batch_norm input weight bias running_mean running_var $training
       momentum:$exponential_average_factor eps:$epsilon |
       !training mean = new_zeros weight size:[0] | !training rstd = new_zeros weight size:[0] |
       reserve = new_zeros input size:[0] dtype:u8 -> out mean rstd reserve
steps  miopen_batch_norm  input weight bias? running_mean? running_var? ; training
       exponential_average_factor epsilon :=
       out,mean,rstd = native_batch_norm input weight bias running_mean running_var $training
       momentum:$exponential_average_factor eps:$epsilon |
       !training mean = new_zeros weight size:[0] | !training rstd = new_zeros weight size:[0]
       -> out mean rstd
steps  cudnn_batch_norm_backward  input grad_output weight running_mean? running_var? save_mean?
       save_var? reserveSpace ; epsilon :=
       native_batch_norm_backward grad_output input weight running_mean running_var save_mean
       save_var train:true eps:$epsilon output_mask:[true,true,true] -> *
steps  miopen_batch_norm_backward  input grad_output weight running_mean? running_var? save_mean?
       save_var? ; epsilon :=
       native_batch_norm_backward grad_output input weight running_mean running_var save_mean
       save_var train:true eps:$epsilon output_mask:[true,true,true] -> *
)";

}  // namespace reshard
