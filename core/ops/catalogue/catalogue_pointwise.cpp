// SPDX-License-Identifier: BSD-3-Clause
// The rows of pointwise operators.
#include "core/ops/rules/rules.h"

namespace reshard {

const std::string_view kPointwiseOperators = R"(
pointwise              abs,abs_,abs.out>                     self
pointwise=float        acos,acos_,acos.out>                  self
pointwise=float        acosh,acosh_,acosh.out>               self
pointwise              add.Scalar,add_.Scalar,add.Scalar_out> self ; other alpha
pointwise+additive     add.Tensor,add_.Tensor,add.out>       self other ; alpha
pointwise              addcdiv,addcdiv_,addcdiv.out>         self tensor1 tensor2 ; value
pointwise              addcmul,addcmul_,addcmul.out>         self tensor1 tensor2 ; value
pointwise=float        angle,angle.out>                      self
pointwise=float        asin,asin_,asin.out>                  self
pointwise+rising=float asinh,asinh_,asinh.out>               self
pointwise+rising=float atan,atan_,atan.out>                  self
pointwise=float        atan2,atan2_,atan2.out>               self other
pointwise=float        atanh,atanh_,atanh.out>               self
pointwise              bitwise_and.Scalar,bitwise_and_.Scalar,bitwise_and.Scalar_out> self ; other
pointwise              bitwise_and.Scalar_Tensor,bitwise_and.Scalar_Tensor_out> other ; self
pointwise              bitwise_and.Tensor,bitwise_and_.Tensor,bitwise_and.Tensor_out> self other
pointwise              bitwise_left_shift.Scalar_Tensor,bitwise_left_shift.Scalar_Tensor_out>
                       other ; self
pointwise              bitwise_left_shift.Tensor,bitwise_left_shift_.Tensor,
                       bitwise_left_shift.Tensor_out> self other
pointwise              bitwise_left_shift.Tensor_Scalar,bitwise_left_shift_.Tensor_Scalar,
                       bitwise_left_shift.Tensor_Scalar_out> self ; other
pointwise              bitwise_not,bitwise_not_,bitwise_not.out> self
pointwise              bitwise_or.Scalar,bitwise_or_.Scalar,bitwise_or.Scalar_out> self ; other
pointwise              bitwise_or.Scalar_Tensor,bitwise_or.Scalar_Tensor_out> other ; self
pointwise              bitwise_or.Tensor,bitwise_or_.Tensor,bitwise_or.Tensor_out> self other
pointwise              bitwise_right_shift.Scalar_Tensor,bitwise_right_shift.Scalar_Tensor_out>
                       other ; self
pointwise              bitwise_right_shift.Tensor,bitwise_right_shift_.Tensor,
                       bitwise_right_shift.Tensor_out> self other
pointwise              bitwise_right_shift.Tensor_Scalar,bitwise_right_shift_.Tensor_Scalar,
                       bitwise_right_shift.Tensor_Scalar_out> self ; other
pointwise              bitwise_xor.Scalar,bitwise_xor_.Scalar,bitwise_xor.Scalar_out> self ; other
pointwise              bitwise_xor.Scalar_Tensor,bitwise_xor.Scalar_Tensor_out> other ; self
pointwise              bitwise_xor.Tensor,bitwise_xor_.Tensor,bitwise_xor.Tensor_out> self other
pointwise+rising       ceil,ceil_,ceil.out>                  self
pointwise              celu,celu_,celu.out>                  self ; alpha
pointwise              clamp,clamp_,clamp.out>               self ; min max
pointwise              clamp.Tensor,clamp_.Tensor,clamp.Tensor_out> self min? max?
pointwise              clamp_max,clamp_max_,clamp_max.out>   self ; max
pointwise+smallest     clamp_max.Tensor,clamp_max_.Tensor,clamp_max.Tensor_out> self max
pointwise              clamp_min,clamp_min_,clamp_min.out>   self ; min
pointwise+largest      clamp_min.Tensor,clamp_min_.Tensor,clamp_min.Tensor_out> self min
pointwise              clip,clip_,clip.out>                  self ; min max
pointwise              clip.Tensor,clip_.Tensor,clip.Tensor_out> self min? max?
pointwise              _conj                                 self
pointwise+sums=complex complex                               real imag
pointwise              conj_physical,conj_physical_,conj_physical.out> self
pointwise+copy         copy_,copy.out>                       self src
pointwise=float        copysign.Scalar,copysign_.Scalar,copysign.Scalar_out> self ; other
pointwise=float        copysign.Tensor,copysign_.Tensor,copysign.out> self other
pointwise=float        cos,cos_,cos.out>                     self
pointwise=float        cosh,cosh_,cosh.out>                  self
pointwise+rising=float deg2rad,deg2rad_,deg2rad.out>         self
pointwise=float        digamma,digamma_,digamma.out>         self
pointwise+linear=float div.Scalar,div_.Scalar,div.Scalar_out> self ; other
pointwise=float        div.Scalar_mode,div_.Scalar_mode,div.Scalar_mode_out> self ; other
                       rounding_mode
pointwise+div=float    div.Tensor,div_.Tensor,div.out>       self other
pointwise=float        div.Tensor_mode,div_.Tensor_mode,div.out_mode> self other ; rounding_mode
pointwise              elu,elu_,elu.out>                     self ; alpha scale input_scale
pointwise              elu_backward grad_output self_or_result ; alpha scale input_scale is_result
pointwise=bool         eq.Scalar,eq_.Scalar,eq.Scalar_out>   self ; other
pointwise=bool         eq.Tensor,eq_.Tensor,eq.Tensor_out>   self other
pointwise+rising=float erf,erf_,erf.out>                     self
pointwise+falling=float erfc,erfc_,erfc.out>                 self
pointwise=float        erfinv,erfinv_,erfinv.out>            self
pointwise+rising=float exp,exp_,exp.out>                     self
pointwise+rising=float exp2,exp2_,exp2.out>                  self
pointwise+rising=float expm1,expm1_,expm1.out>               self
pointwise              float_power.Scalar,float_power.Scalar_out> exponent ; self
pointwise              float_power.Tensor_Scalar,float_power_.Scalar,
                       float_power.Tensor_Scalar_out> self ; exponent
pointwise              float_power.Tensor_Tensor,float_power_.Tensor,
                       float_power.Tensor_Tensor_out> self exponent
pointwise+rising       floor,floor_,floor.out>               self
pointwise+largest      fmax,fmax.out>                        self other
pointwise+smallest     fmin,fmin.out>                        self other
pointwise              fmod.Scalar,fmod_.Scalar,fmod.Scalar_out> self ; other
pointwise              fmod.Tensor,fmod_.Tensor,fmod.Tensor_out> self other
pointwise              frac,frac_,frac.out>                  self
frexp                  frexp.Tensor,frexp.Tensor_out>        self
pointwise              gcd,gcd_,gcd.out>                     self other
pointwise=bool         ge.Scalar,ge_.Scalar,ge.Scalar_out>   self ; other
pointwise=bool         ge.Tensor,ge_.Tensor,ge.Tensor_out>   self other
pointwise              gelu,gelu_,gelu.out>                  self ; approximate
pointwise              gelu_backward,gelu_backward.grad_input> grad_output self ; approximate
pointwise=bool         gt.Scalar,gt_.Scalar,gt.Scalar_out>   self ; other
pointwise=bool         gt.Tensor,gt_.Tensor,gt.Tensor_out>   self other
pointwise+rising       hardshrink,hardshrink.out>            self ; lambd
pointwise              hardsigmoid,hardsigmoid_,hardsigmoid.out> self
pointwise              hardsigmoid_backward                  grad_output self
pointwise              hardswish,hardswish_,hardswish.out>   self
pointwise              hardswish_backward                    grad_output self
pointwise              hardtanh,hardtanh_,hardtanh.out>      self ; min_val max_val
pointwise              hardtanh_backward                     grad_output self ; min_val max_val
pointwise              heaviside,heaviside_,heaviside.out>   self values
pointwise              hypot,hypot_,hypot.out>               self other
pointwise=float        i0,i0_,i0.out>                        self
pointwise=float        igamma,igamma_,igamma.out>            self other
pointwise=float        igammac,igammac_,igammac.out>         self other
pointwise              __ilshift__.Scalar                    self ; other
pointwise              __ilshift__.Tensor                    self other
pointwise              __irshift__.Scalar                    self ; other
pointwise              __irshift__.Tensor                    self other
pointwise=bool         isfinite                              self
pointwise=bool         isinf,isinf.out>                      self
pointwise=bool         isnan,isnan.out>                      self
pointwise=bool         isneginf,isneginf.out>                self
pointwise=bool         isposinf,isposinf.out>                self
pointwise              __ixor__.Scalar                       self ; other
pointwise              __ixor__.Tensor                       self other
pointwise              lcm,lcm_,lcm.out>                     self other
pointwise=float        ldexp.Tensor,ldexp_,ldexp.out>        self other
pointwise=bool         le.Scalar,le_.Scalar,le.Scalar_out>   self ; other
pointwise=bool         le.Tensor,le_.Tensor,le.Tensor_out>   self other
pointwise              leaky_relu,leaky_relu_,leaky_relu.out> self ; negative_slope
pointwise_even         leaky_relu_backward grad_output self ; negative_slope self_is_result
pointwise              lerp.Scalar,lerp_.Scalar,lerp.Scalar_out> self end ; weight
pointwise              lerp.Tensor,lerp_.Tensor,lerp.Tensor_out> self end weight
pointwise=float        lgamma,lgamma_,lgamma.out>            self
pointwise=float        log,log_,log.out>                     self
pointwise=float        log10,log10_,log10.out>               self
pointwise=float        log1p,log1p_,log1p.out>               self
pointwise=float        log2,log2_,log2.out>                  self
pointwise              log_sigmoid                           self
pointwise+monotone     logaddexp,logaddexp.out>              self other
pointwise+monotone     logaddexp2,logaddexp2.out>            self other
pointwise=bool         logical_and,logical_and_,logical_and.out> self other
pointwise=bool         logical_not,logical_not_,logical_not.out> self
pointwise=bool         logical_or,logical_or_,logical_or.out> self other
pointwise=bool         logical_xor,logical_xor_,logical_xor.out> self other
pointwise=float        logit,logit_,logit.out>               self ; eps
pointwise              logit_backward,logit_backward.grad_input> grad_output self ; eps
pointwise              __lshift__.Scalar,__lshift__.Scalar_out> self ; other
pointwise              __lshift__.Tensor,__lshift__.Tensor_out> self other
pointwise=bool         lt.Scalar,lt_.Scalar,lt.Scalar_out>   self ; other
pointwise=bool         lt.Tensor,lt_.Tensor,lt.Tensor_out>   self other
pointwise              masked_fill.Scalar,masked_fill_.Scalar,masked_fill.Scalar_out> self mask ;
                       value
pointwise_even         masked_fill.Tensor,masked_fill_.Tensor self mask value
pointwise              max.other,max.out>                    self other
pointwise+largest      maximum,maximum.out>                  self other
pointwise              min.other,min.out>                    self other
pointwise+smallest     minimum,minimum.out>                  self other
pointwise              mish,mish_,mish.out>                  self
pointwise              mish_backward                         grad_output self
pointwise+linear       mul.Scalar,mul_.Scalar,mul.Scalar_out> self ; other
pointwise+mul          mul.Tensor,mul_.Tensor,mul.out>       self other
pointwise=float        mvlgamma,mvlgamma_,mvlgamma.out>      self ; p
pointwise+rising       nan_to_num,nan_to_num_,nan_to_num.out> self ; nan posinf neginf
pointwise=float        native_dropout_backward,native_dropout_backward.out> grad_output mask ;
                       scale
pointwise=bool         ne.Scalar,ne_.Scalar,ne.Scalar_out>   self ; other
pointwise=bool         ne.Tensor,ne_.Tensor,ne.Tensor_out>   self other
pointwise+neg          neg,neg_,neg.out>                     self
pointwise              nextafter,nextafter_,nextafter.out>   self other
pointwise=float        polygamma,polygamma_,polygamma.out>   self ; n
pointwise+any          positive                              self
pointwise              pow.Scalar,pow.Scalar_out>            exponent ; self
pointwise              pow.Tensor_Scalar,pow_.Scalar,pow.Tensor_Scalar_out> self ; exponent
pointwise              pow.Tensor_Tensor,pow_.Tensor,pow.Tensor_Tensor_out> self exponent
pointwise+rising=float rad2deg,rad2deg_,rad2deg.out>         self
pointwise=float        reciprocal,reciprocal_,reciprocal.out> self
pointwise+rising       relu,relu_,relu.out>                  self
pointwise              relu6,relu6_                          self
pointwise              remainder.Scalar,remainder_.Scalar,remainder.Scalar_out> self ; other
pointwise              remainder.Scalar_Tensor,remainder.Scalar_Tensor_out> other ; self
pointwise              remainder.Tensor,remainder_.Tensor,remainder.Tensor_out> self other
pointwise+rising       round,round_,round.out>               self
pointwise+rising       round.decimals,round_.decimals,round.decimals_out> self ; decimals
pointwise              rrelu_with_noise,rrelu_with_noise.out> self noise ; lower upper training
pointwise              __rshift__.Scalar,__rshift__.Scalar_out> self ; other
pointwise              __rshift__.Tensor,__rshift__.Tensor_out> self other
pointwise=float        rsqrt,rsqrt_,rsqrt.out>               self
pointwise              rsub.Scalar,rsub.Scalar_out>          self ; other alpha
pointwise              selu,selu_                            self
pointwise+rising       sgn,sgn_,sgn.out>                     self
pointwise+rising=float sigmoid,sigmoid_,sigmoid.out>         self
pointwise              sigmoid_backward,sigmoid_backward.grad_input> grad_output output
pointwise+rising       sign,sign_,sign.out>                  self
pointwise=bool         signbit,signbit.out>                  self
pointwise              silu,silu_,silu.out>                  self
pointwise              silu_backward,silu_backward.grad_input> grad_output self
pointwise=float        sin,sin_,sin.out>                     self
pointwise=float        sinc,sinc_,sinc.out>                  self
pointwise+rising=float sinh,sinh_,sinh.out>                  self
pointwise              softplus,softplus.out>                self ; beta threshold
pointwise              softplus_backward                     grad_output self ; beta threshold
pointwise              softshrink,softshrink.out>            self ; lambd
pointwise=float        special_bessel_j0,special_bessel_j0.out> self
pointwise=float        special_bessel_j1,special_bessel_j1.out> self
pointwise=float        special_bessel_y0,special_bessel_y0.out> self
pointwise=float        special_bessel_y1,special_bessel_y1.out> self
pointwise=float        special_chebyshev_polynomial_t,special_chebyshev_polynomial_t.out>,
                       special_chebyshev_polynomial_u,special_chebyshev_polynomial_u.out>,
                       special_chebyshev_polynomial_v,special_chebyshev_polynomial_v.out>,
                       special_chebyshev_polynomial_w,special_chebyshev_polynomial_w.out>,
                       special_hermite_polynomial_h,special_hermite_polynomial_h.out>,
                       special_hermite_polynomial_he,special_hermite_polynomial_he.out>,
                       special_laguerre_polynomial_l,special_laguerre_polynomial_l.out>,
                       special_legendre_polynomial_p,special_legendre_polynomial_p.out>,
                       special_shifted_chebyshev_polynomial_t,
                       special_shifted_chebyshev_polynomial_t.out>,
                       special_shifted_chebyshev_polynomial_u,
                       special_shifted_chebyshev_polynomial_u.out>,
                       special_shifted_chebyshev_polynomial_v,
                       special_shifted_chebyshev_polynomial_v.out>,
                       special_shifted_chebyshev_polynomial_w,
                       special_shifted_chebyshev_polynomial_w.out> x n
pointwise=float        special_chebyshev_polynomial_t.n_scalar,
                       special_chebyshev_polynomial_u.n_scalar,
                       special_chebyshev_polynomial_v.n_scalar,
                       special_chebyshev_polynomial_w.n_scalar,
                       special_hermite_polynomial_h.n_scalar,
                       special_hermite_polynomial_he.n_scalar,
                       special_laguerre_polynomial_l.n_scalar,
                       special_legendre_polynomial_p.n_scalar,
                       special_shifted_chebyshev_polynomial_t.n_scalar,
                       special_shifted_chebyshev_polynomial_u.n_scalar,
                       special_shifted_chebyshev_polynomial_v.n_scalar,
                       special_shifted_chebyshev_polynomial_w.n_scalar x ; n
pointwise=float        special_chebyshev_polynomial_t.x_scalar,
                       special_chebyshev_polynomial_u.x_scalar,
                       special_chebyshev_polynomial_v.x_scalar,
                       special_chebyshev_polynomial_w.x_scalar,
                       special_hermite_polynomial_h.x_scalar,
                       special_hermite_polynomial_he.x_scalar,
                       special_laguerre_polynomial_l.x_scalar,
                       special_legendre_polynomial_p.x_scalar,
                       special_shifted_chebyshev_polynomial_t.x_scalar,
                       special_shifted_chebyshev_polynomial_u.x_scalar,
                       special_shifted_chebyshev_polynomial_v.x_scalar,
                       special_shifted_chebyshev_polynomial_w.x_scalar n ; x
pointwise=float        special_entr,special_entr.out>        self
pointwise+falling=float special_erfcx,special_erfcx.out>     self
pointwise=float        special_i0e,special_i0e.out>          self
pointwise=float        special_i1,special_i1.out>            self
pointwise=float        special_i1e,special_i1e.out>          self
pointwise=float        special_log_ndtr,special_log_ndtr.out> self
pointwise=float        special_modified_bessel_i0,special_modified_bessel_i0.out> self
pointwise+rising=float special_modified_bessel_i1,special_modified_bessel_i1.out> self
pointwise+besselk=float special_modified_bessel_k0,special_modified_bessel_k0.out> self
pointwise+besselk=float special_modified_bessel_k1,special_modified_bessel_k1.out> self
pointwise=float        special_ndtri,special_ndtri.out>      self
pointwise+besselk=float special_scaled_modified_bessel_k0,special_scaled_modified_bessel_k0.out> x
pointwise+besselk=float special_scaled_modified_bessel_k1,special_scaled_modified_bessel_k1.out> x
pointwise=float        special_spherical_bessel_j0,special_spherical_bessel_j0.out> x
pointwise+div2=float   special_xlog1py,special_xlog1py.out>  self other
pointwise+div2=float   special_xlog1py.other_scalar,special_xlog1py.other_scalar_out> self ; other
pointwise=float        special_xlog1py.self_scalar,special_xlog1py.self_scalar_out> other ; self
pointwise=float        special_zeta,special_zeta.out>        self other
pointwise=float        special_zeta.other_scalar,special_zeta.other_scalar_out> self ; other
pointwise=float        special_zeta.self_scalar,special_zeta.self_scalar_out> other ; self
pointwise=float        sqrt,sqrt_,sqrt.out>                  self
pointwise              square,square_,square.out>            self
pointwise              sub.Scalar,sub_.Scalar,sub.Scalar_out> self ; other alpha
pointwise+additive     sub.Tensor,sub_.Tensor,sub.out>       self other ; alpha
pointwise+additive     subtract.Tensor                       self other ; alpha
pointwise=float        tan,tan_,tan.out>                     self
pointwise+rising=float tanh,tanh_,tanh.out>                  self
pointwise              tanh_backward,tanh_backward.grad_input> grad_output output
threshold+rising       threshold,threshold_,threshold.out>   self ; threshold value
pointwise              threshold_backward,threshold_backward.grad_input> grad_output self ;
                       threshold
pointwise=float        true_divide.Tensor,true_divide_.Tensor,true_divide.out> self other
pointwise+rising       trunc,trunc_,trunc.out>               self
pointwise              where.self,where.self_out>            condition self other
pointwise=float        xlogy.Scalar_Other,xlogy_.Scalar_Other,xlogy.OutScalar_Other> self ; other
pointwise=float        xlogy.Scalar_Self,xlogy.OutScalar_Self> other ; self
pointwise=float        xlogy.Tensor,xlogy_.Tensor,xlogy.OutTensor> self other
pointwise              __xor__.Scalar                        self ; other
pointwise              __xor__.Tensor                        self other
)";

}  // namespace reshard
