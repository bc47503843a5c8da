// SPDX-License-Identifier: BSD-3-Clause
// The rows of pooling, resampling, batch norm and linear algebra.
#include "core/ops/rules/rules.h"

namespace reshard {

const std::string_view kImageOperators = R"(
pool                   avg_pool1d,avg_pool1d.out> self ; kernel_size stride padding ceil_mode
                       count_include_pad
pool                   avg_pool2d,avg_pool2d.out>,avg_pool3d,avg_pool3d.out> self ; kernel_size
                       stride padding ceil_mode count_include_pad divisor_override
pool                   adaptive_avg_pool1d,adaptive_avg_pool1d.out>,_adaptive_avg_pool2d,
                       _adaptive_avg_pool2d.out>,_adaptive_avg_pool3d,_adaptive_avg_pool3d.out>
                       self ; output_size
pool                   adaptive_max_pool1d,adaptive_max_pool2d,adaptive_max_pool2d.out>,
                       adaptive_max_pool3d,adaptive_max_pool3d.out> self ; output_size
pool                   max_pool1d_with_indices,max_pool2d_with_indices,
                       max_pool2d_with_indices.out>,max_pool3d_with_indices,
                       max_pool3d_with_indices.out> self ; kernel_size stride padding dilation
                       ceil_mode
max_pool_backward      max_pool2d_with_indices_backward,
                       max_pool2d_with_indices_backward.grad_input> grad_output self indices ;
                       kernel_size stride padding dilation ceil_mode
pool_backward          _adaptive_avg_pool2d_backward,_adaptive_avg_pool2d_backward.out>
                       grad_output self
unpool                 max_unpool2d,max_unpool2d.out>        self indices ; output_size
resample               upsample_nearest1d,upsample_nearest1d.out>,_upsample_nearest_exact1d,
                       _upsample_nearest_exact1d.out> self ; output_size scales
resample               upsample_nearest1d_backward,upsample_nearest1d_backward.grad_input>,
                       _upsample_nearest_exact1d_backward,
                       _upsample_nearest_exact1d_backward.grad_input> grad_output ; output_size
                       input_size scales
resample               upsample_nearest2d,upsample_nearest2d.out>,_upsample_nearest_exact2d,
                       _upsample_nearest_exact2d.out> self ; output_size scales_h scales_w
resample               upsample_nearest2d_backward,upsample_nearest2d_backward.grad_input>,
                       _upsample_nearest_exact2d_backward,
                       _upsample_nearest_exact2d_backward.grad_input> grad_output ; output_size
                       input_size scales_h scales_w
resample               upsample_nearest3d,upsample_nearest3d.out>,_upsample_nearest_exact3d,
                       _upsample_nearest_exact3d.out> self ; output_size scales_d scales_h
                       scales_w
resample               upsample_nearest3d_backward,upsample_nearest3d_backward.grad_input>,
                       _upsample_nearest_exact3d_backward,
                       _upsample_nearest_exact3d_backward.grad_input> grad_output ; output_size
                       input_size scales_d scales_h scales_w
resample               upsample_linear1d,upsample_linear1d.out> self ; output_size align_corners
                       scales
resample               upsample_linear1d_backward,upsample_linear1d_backward.grad_input>
                       grad_output ; output_size input_size align_corners scales
resample               upsample_bilinear2d,upsample_bilinear2d.out>,upsample_bicubic2d,
                       upsample_bicubic2d.out> self ; output_size align_corners scales_h scales_w
resample               upsample_bilinear2d_backward,upsample_bilinear2d_backward.grad_input>,
                       upsample_bicubic2d_backward,upsample_bicubic2d_backward.grad_input>
                       grad_output ; output_size input_size align_corners scales_h scales_w
resample               upsample_trilinear3d,upsample_trilinear3d.out> self ; output_size
                       align_corners scales_d scales_h scales_w
resample               upsample_trilinear3d_backward,upsample_trilinear3d_backward.grad_input>
                       grad_output ; output_size input_size align_corners scales_d scales_h
                       scales_w
batch_norm             native_batch_norm,native_batch_norm.out>,_native_batch_norm_legit,
                       _native_batch_norm_legit.out> input weight? bias? running_mean?
                       running_var? ; training momentum eps
batch_norm             _native_batch_norm_legit.no_stats,_native_batch_norm_legit.no_stats_out>
                       input weight? bias? ; training momentum eps
batch_norm             _native_batch_norm_legit_no_training,
                       _native_batch_norm_legit_no_training.out>,_batch_norm_with_update,
                       _batch_norm_with_update.out> input weight? bias? running_mean running_var
                       ; momentum eps
batch_norm_backward    native_batch_norm_backward,native_batch_norm_backward.out> grad_out input
                       weight? running_mean? running_var? save_mean? save_invstd? ; train eps
                       output_mask
linalg+like            linalg_matrix_exp,linalg_matrix_exp.out> self
linalg+like            cholesky_inverse,cholesky_inverse.out> self ; upper
linalg+factor          linalg_cholesky_ex,linalg_cholesky_ex.L> self ; upper check_errors
linalg+factor          linalg_inv_ex,linalg_inv_ex.inverse>  A ; check_errors
linalg+lu              linalg_lu_factor_ex,linalg_lu_factor_ex.out> A ; pivot check_errors
linalg+det             _linalg_det,_linalg_det.result>       A
linalg+slogdet         _linalg_slogdet,_linalg_slogdet.sign> A
grid_sample            grid_sampler_2d,grid_sampler_3d       input grid ; interpolation_mode
                       padding_mode align_corners
grid_sample            grid_sampler_2d_backward,grid_sampler_3d_backward grad_output input grid ;
                       interpolation_mode padding_mode align_corners output_mask
linalg+solve           _linalg_solve_ex,_linalg_solve_ex.result> A B ; left check_errors
linalg+triangular      linalg_solve_triangular,linalg_solve_triangular.out> self B ; upper left
                       unitriangular
linalg+cholesky        cholesky_solve,cholesky_solve.out>    self input2 ; upper
linalg+solve_lu        linalg_lu_solve,linalg_lu_solve.out>  LU pivots B ; left adjoint
decompose              linalg_qr,linalg_qr.out>              A ; mode
decompose              _linalg_eigh,_linalg_eigh.eigenvalues> A ; UPLO compute_v
decompose              _linalg_svd,_linalg_svd.U>            A ; full_matrices compute_uv driver
cross                  linalg_cross,linalg_cross.out>        self other ; dim
)";

}  // namespace reshard
