// SPDX-License-Identifier: BSD-3-Clause
// The rows of operators on lists of tensors, position by position, and of fused optimisers.
#include "core/ops/rules/rules.h"

namespace reshard {

const std::string_view kListOperators = R"(
pointwise              _amp_foreach_non_finite_check_and_unscale_ self[] found_inf inv_scale
pointwise              _foreach_abs,_foreach_abs_            self[]
pointwise=float        _foreach_acos,_foreach_acos_          self[]
pointwise+additive     _foreach_add.List,_foreach_add_.List  self[] other[] ; alpha
pointwise              _foreach_add.Scalar,_foreach_add_.Scalar self[] ; scalar
pointwise              _foreach_add.ScalarList,_foreach_add_.ScalarList self[] ; scalars
pointwise              _foreach_add.Tensor,_foreach_add_.Tensor self[] other ; alpha
pointwise              _foreach_addcdiv.Scalar,_foreach_addcdiv_.Scalar self[] tensor1[] tensor2[]
                       ; value
pointwise              _foreach_addcdiv.ScalarList,_foreach_addcdiv_.ScalarList self[] tensor1[]
                       tensor2[] ; scalars
pointwise              _foreach_addcdiv_.Tensor              self[] tensor1[] tensor2[] scalars
pointwise              _foreach_addcmul.Scalar,_foreach_addcmul_.Scalar self[] tensor1[] tensor2[]
                       ; value
pointwise              _foreach_addcmul.ScalarList,_foreach_addcmul_.ScalarList self[] tensor1[]
                       tensor2[] ; scalars
pointwise              _foreach_addcmul_.Tensor              self[] tensor1[] tensor2[] scalars
pointwise=float        _foreach_asin,_foreach_asin_          self[]
pointwise=float        _foreach_atan,_foreach_atan_          self[]
keep                   _foreach_clone                       self[]
pointwise              _foreach_ceil,_foreach_ceil_          self[]
pointwise              _foreach_clamp_max.List,_foreach_clamp_max_.List self[] other[]
pointwise              _foreach_clamp_max.Scalar             self[] ; scalar
pointwise              _foreach_clamp_max.ScalarList,_foreach_clamp_max_.ScalarList self[] ;
                       scalars
pointwise+rising       _foreach_clamp_max_.Scalar            self[] ; scalar
pointwise              _foreach_clamp_min.List,_foreach_clamp_min_.List self[] other[]
pointwise              _foreach_clamp_min.Scalar             self[] ; scalar
pointwise              _foreach_clamp_min.ScalarList,_foreach_clamp_min_.ScalarList self[] ;
                       scalars
pointwise+rising       _foreach_clamp_min_.Scalar            self[] ; scalar
pointwise+copy         _foreach_copy_                        self[] src[]
pointwise=float        _foreach_cos,_foreach_cos_            self[]
pointwise=float        _foreach_cosh,_foreach_cosh_          self[]
pointwise+div=float    _foreach_div.List,_foreach_div_.List  self[] other[]
pointwise+linear=float _foreach_div.Scalar,_foreach_div_.Scalar self[] ; scalar
pointwise+linear=float _foreach_div.ScalarList,_foreach_div_.ScalarList self[] ; scalars
pointwise+div          _foreach_div.Tensor,_foreach_div_.Tensor self[] other
pointwise=float        _foreach_erf,_foreach_erf_            self[]
pointwise=float        _foreach_erfc,_foreach_erfc_          self[]
pointwise+rising=float _foreach_exp,_foreach_exp_            self[]
pointwise=float        _foreach_expm1,_foreach_expm1_        self[]
pointwise              _foreach_floor,_foreach_floor_        self[]
pointwise              _foreach_frac,_foreach_frac_          self[]
pointwise              _foreach_lerp.List,_foreach_lerp_.List self[] tensors1[] weights[]
pointwise              _foreach_lerp.Scalar,_foreach_lerp.ScalarList,_foreach_lerp_.Scalar,
                       _foreach_lerp_.ScalarList self[] tensors1[] ; weight
pointwise=float        _foreach_lgamma,_foreach_lgamma_      self[]
pointwise=float        _foreach_log,_foreach_log_            self[]
pointwise=float        _foreach_log10,_foreach_log10_        self[]
pointwise=float        _foreach_log1p,_foreach_log1p_        self[]
pointwise=float        _foreach_log2,_foreach_log2_          self[]
reduce+max             _foreach_max                          self[]
pointwise+largest      _foreach_maximum.List                 self[] other[]
pointwise+largest      _foreach_maximum_.List                self[] other[]
pointwise              _foreach_minimum.List,_foreach_minimum_.List self[] other[]
pointwise+mul          _foreach_mul.List,_foreach_mul_.List  self[] other[]
pointwise+linear       _foreach_mul.Scalar,_foreach_mul_.Scalar self[] ; scalar
pointwise+linear       _foreach_mul.ScalarList,_foreach_mul_.ScalarList self[] ; scalars
pointwise+mul          _foreach_mul.Tensor,_foreach_mul_.Tensor self[] other
pointwise+neg          _foreach_neg,_foreach_neg_            self[]
norm                   _foreach_norm.Scalar                  self[] ; ord dtype
pointwise              _foreach_pow.List,_foreach_pow_.List  self[] exponent[]
pointwise              _foreach_pow.Scalar,_foreach_pow.ScalarList,_foreach_pow_.Scalar,
                       _foreach_pow_.ScalarList self[] ; exponent
pointwise              _foreach_pow.ScalarAndTensor          exponent[] ; self
norm                   _foreach_powsum.Scalar                self[] ; ord dtype
pointwise=float        _foreach_reciprocal,_foreach_reciprocal_ self[]
pointwise              _foreach_round,_foreach_round_        self[]
pointwise=float        _foreach_rsqrt,_foreach_rsqrt_        self[]
pointwise=float        _foreach_sigmoid,_foreach_sigmoid_    self[]
pointwise              _foreach_sign,_foreach_sign_          self[]
pointwise=float        _foreach_sin,_foreach_sin_            self[]
pointwise=float        _foreach_sinh,_foreach_sinh_          self[]
pointwise=float        _foreach_sqrt,_foreach_sqrt_          self[]
pointwise+additive     _foreach_sub.List,_foreach_sub_.List  self[] other[] ; alpha
pointwise              _foreach_sub.Scalar,_foreach_sub_.Scalar self[] ; scalar
pointwise              _foreach_sub.ScalarList,_foreach_sub_.ScalarList self[] ; scalars
pointwise=float        _foreach_tan,_foreach_tan_            self[]
pointwise=float        _foreach_tanh,_foreach_tanh_          self[]
pointwise              _foreach_trunc,_foreach_trunc_        self[]
pointwise              _foreach_zero_                        self[]
optimizer              _fused_adam,_fused_adam_ self[] grads[] exp_avgs[] exp_avg_sqs[]
                       max_exp_avg_sqs[] state_steps[] grad_scale? found_inf? ; lr beta1 beta2
                       weight_decay eps amsgrad maximize
optimizer              _fused_adam.tensor_lr,_fused_adam_.tensor_lr self[] grads[] exp_avgs[]
                       exp_avg_sqs[] max_exp_avg_sqs[] state_steps[] lr grad_scale? found_inf? ;
                       beta1 beta2 weight_decay eps amsgrad maximize
optimizer              _fused_adamw,_fused_adamw_ self[] grads[] exp_avgs[] exp_avg_sqs[]
                       max_exp_avg_sqs[] state_steps[] grad_scale? found_inf? ; lr beta1 beta2
                       weight_decay eps amsgrad maximize
optimizer              _fused_adamw.tensor_lr,_fused_adamw_.tensor_lr self[] grads[] exp_avgs[]
                       exp_avg_sqs[] max_exp_avg_sqs[] state_steps[] lr grad_scale? found_inf? ;
                       beta1 beta2 weight_decay eps amsgrad maximize
)";

}  // namespace reshard
