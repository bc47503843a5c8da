// SPDX-License-Identifier: BSD-3-Clause
// The rows of products, reductions, normalisations, attention, losses and convolutions.
#include "core/ops/rules/rules.h"

namespace reshard {

const std::string_view kTensorOperators = R"(
product_and_bias       addmm,addmm_,addmm.out>               self mat1 mat2 ; beta alpha
reduce_whole           all,all.all_out>                      self
reduce_whole           all.dim,all.out>                      self ; dim keepdim
reduce+max             amax,amax.out>                        self ; dim keepdim
reduce+min             amin,amin.out>                        self ; dim keepdim
reduce_whole           any,any.all_out>                      self
reduce_whole           any.dim,any.dims,any.dims_out>,any.out> self ; dim keepdim
argmax                 argmax,argmax.out>                    self ; dim keepdim
argmax                 argmin,argmin.out>                    self ; dim keepdim
product_and_bias       baddbmm,baddbmm_,baddbmm.out>         self batch1 batch2 ; beta alpha
product                bmm,bmm.out>                          self mat2
convolution            convolution,convolution.out> input weight bias? ; stride padding dilation
                       transposed output_padding groups
convolution_backward   convolution_backward,convolution_backward.out> grad_output input weight ;
                       bias_sizes stride padding dilation transposed output_padding groups
                       output_mask
scan_indices           cummax,cummax.out>                    self ; dim
scan_indices           cummin,cummin.out>                    self ; dim
scan                   cumprod,cumprod_,cumprod.out>         self ; dim dtype
scan                   cumsum,cumsum_,cumsum.out>            self ; dim dtype
product                dot,dot.out>                          self tensor
einsum                 einsum                                tensors[] ; equation
embedding              embedding,embedding.out> weight indices ; padding_idx scale_grad_by_freq
                       sparse
embedding_backward     embedding_dense_backward,embedding_dense_backward.out> grad_output indices
                       ; num_weights padding_idx scale_grad_by_freq
norm_forward           _fused_rms_norm                       input weight? ; normalized_shape eps
norm_backward          _fused_rms_norm_backward grad_out input rstd weight? ; normalized_shape
                       output_mask
reduce_indices         kthvalue,kthvalue.values>             self ; k dim keepdim
norm                   linalg__powsum                        self ; ord dim keepdim dtype
norm                   linalg_vector_norm,linalg_vector_norm.out> self ; ord dim keepdim dtype
linear                 linear                                input weight bias?
softmax                _log_softmax,_log_softmax.out>        self ; dim half_to_float
softmax                _log_softmax_backward_data,_log_softmax_backward_data.out> grad_output
                       output ; dim input_dtype
scan                   logcumsumexp,logcumsumexp.out>        self ; dim
reduce_whole           logsumexp,logsumexp.out>              self ; dim keepdim
grouped                _grouped_mm                           self mat2 offs? bias? ; out_dtype
scaled_product         _scaled_mm,_scaled_mm.out> self mat2 scale_a scale_b bias? scale_result? ;
                       out_dtype use_fast_accum
matmul                 matmul                                self other
reduce+max             max,max.unary_out>                    self
reduce_indices         max.dim,max.dim_max>                  self ; dim keepdim
mean                   mean,mean.dtype_out>                  self ; dtype
mean                   mean.dim,mean.out>                    self ; dim keepdim dtype
reduce_indices         median.dim,median.dim_values>         self ; dim keepdim
reduce+min             min,min.unary_out>                    self
reduce_indices         min.dim,min.dim_min>                  self ; dim keepdim
product                mm,mm.out>                            self mat2
product                _foreach_mm                           self[] mat2[]
reduce_indices         mode,mode.values>                     self ; dim keepdim
product                mv                                    self vec
reduce_indices         nanmedian.dim,nanmedian.dim_values>   self ; dim keepdim
reduce+sum             nansum,nansum.out>                    self ; dim keepdim dtype
group_norm_backward    native_group_norm_backward            grad_out input mean rstd weight? ;
                       N C HxW group output_mask
group_norm             native_group_norm,native_group_norm.out> input weight? bias? ; N C HxW
                       group eps
norm_forward           native_layer_norm,native_layer_norm.out> input weight? bias? ;
                       normalized_shape eps
norm_backward          native_layer_norm_backward,native_layer_norm_backward.out> grad_out input
                       mean rstd weight? bias? ; normalized_shape output_mask
nll_loss_backward      nll_loss2d_backward,nll_loss2d_backward.grad_input> grad_output self target
                       weight? total_weight ; reduction ignore_index
nll_loss               nll_loss2d_forward,nll_loss2d_forward.output> self target weight? ;
                       reduction ignore_index
nll_loss_backward      nll_loss_backward,nll_loss_backward.grad_input> grad_output self target
                       weight? total_weight ; reduction ignore_index
nll_loss               nll_loss_forward,nll_loss_forward.output> self target weight? ; reduction
                       ignore_index
norm                   norm.Scalar,norm.Scalar_out>          self ; p
reduce+product         prod,prod.out>                        self ; dtype
reduce+product         prod.dim_int,prod.int_out>            self ; dim keepdim dtype
softmax                _safe_softmax                         self ; dim dtype
attention              scaled_dot_product_attention query key value attn_mask? ; dropout_p
                       is_causal scale enable_gqa
attention              _scaled_dot_product_attention_math query key value attn_mask? ; dropout_p
                       is_causal scale enable_gqa
attention              _scaled_dot_product_cudnn_attention query key value attn_bias? ;
                       compute_log_sumexp dropout_p is_causal return_debug_mask scale
attention_backward     _scaled_dot_product_cudnn_attention_backward grad_out query key value out
                       logsumexp philox_seed? philox_offset? attn_bias? cum_seq_q? cum_seq_k? ;
                       max_q max_k dropout_p is_causal scale
attention              _scaled_dot_product_efficient_attention query key value attn_bias? ;
                       compute_log_sumexp dropout_p is_causal scale
attention_backward     _scaled_dot_product_efficient_attention_backward grad_out_ query key value
                       attn_bias? out logsumexp philox_seed? philox_offset? ; dropout_p
                       grad_input_mask is_causal scale
attention              _scaled_dot_product_fused_attention_overrideable query key value
                       attn_bias? ; dropout_p is_causal return_debug_mask scale
attention_backward     _scaled_dot_product_fused_attention_overrideable_backward grad_out query key
                       value attn_bias? out logsumexp cum_seq_q? cum_seq_k? philox_seed?
                       philox_offset? ; grad_input_mask max_q max_k dropout_p is_causal scale
attention              _scaled_dot_product_flash_attention query key value ; dropout_p is_causal
                       return_debug_mask scale
attention_backward     _scaled_dot_product_flash_attention_backward grad_out query key value out
                       logsumexp cum_seq_q? cum_seq_k? philox_seed? philox_offset? ; max_q max_k
                       dropout_p is_causal scale
attention              _scaled_dot_product_flash_attention_for_cpu query key value attn_mask? ;
                       dropout_p is_causal scale
attention_backward     _scaled_dot_product_flash_attention_for_cpu_backward grad_out query key
                       value out logsumexp attn_mask? ; dropout_p is_causal scale
softmax                _softmax,_softmax.out>                self ; dim half_to_float
softmax                softmax.int,log_softmax.int           self ; dim dtype
softmax                _softmax_backward_data,_softmax_backward_data.out> grad_output output ; dim
                       input_dtype
sort                   sort,sort.values>                     self ; dim descending
sort                   sort.stable,sort.values_stable>       self ; stable dim descending
reduce_whole           std.correction,std.correction_out>    self ; dim correction keepdim
reduce+sum             sum,sum.out>                          self ; dtype
reduce+sum             sum.dim_IntList,sum.IntList_out>      self ; dim keepdim dtype
sort                   topk,topk.values>                     self ; k dim largest sorted
reduce_whole           var.correction,var.correction_out>    self ; dim correction keepdim
reduce_whole           var_mean.correction,var_mean.correction_out> self ; dim correction keepdim
)";

}  // namespace reshard
