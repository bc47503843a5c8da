// SPDX-License-Identifier: BSD-3-Clause
// The rows of views, joins, splits, look-ups, copies and fills.
#include "core/ops/rules/rules.h"

namespace reshard {

const std::string_view kShapeOperators = R"(
keep                   alias                                 self
random                 bernoulli,bernoulli.out>              self
random                 bernoulli_.float,bernoulli.float_out> self ; p
bucketize              bucketize.Tensor,bucketize.Tensor_out> self boundaries ; out_int32 right
cat                    cat,cat.out>                          tensors[] ; dim
split                  chunk                                 self ; chunks dim
keep                   clone,clone.out>                      self
pad                    constant_pad_nd,constant_pad_nd.out>  self ; pad value
keep                   contiguous                            self
keep                   detach,detach_                        self
diagonal               diag,diag.out>                        self ; diagonal
diagonal               diag_embed,diag_embed.out>            self ; offset dim1 dim2
diagonal               diagonal                              self ; offset dim1 dim2
diagonal_scatter       diagonal_scatter,diagonal_scatter.out> self src ; offset dim1 dim2
diagonal               diagonal_copy,diagonal_copy.out>      self ; offset dim1 dim2
keep                   empty_like                            self ; dtype
equal                  equal                                 self other
view                   expand                                self ; size implicit
view                   expand_copy                           self ; size implicit
view                   as_strided                            self ; size stride storage_offset
view                   broadcast_to                          self ; size
view                   atleast_1d,atleast_2d,atleast_3d      self
view                   mT,adjoint,numpy_T                    self
random                 exponential_,exponential.out>         self ; lambd
keep                   fill_.Scalar,fill.Scalar_out>         self ; value
view                   flatten.using_ints,flatten            self ; start_dim end_dim
turn                   flip,flip.out>                        self ; dims
like                   full_like                             self ; fill_value dtype
gather                 gather,gather.out>                    self index ; dim sparse_grad
random                 geometric_,geometric.out>             self ; p
histc                  histc,histc.out>                      self ; bins min max
index                  index.Tensor,index.Tensor_out>        self indices?[]
index_add              index_add,index_add_                  self index source ; dim alpha
index_copy             index_copy,index_copy_                self index source ; dim
index_fill             index_fill.int_Scalar,index_fill_.int_Scalar,index_fill.int_Scalar_out>
                       self index ; dim value
index_fill             index_fill.int_Tensor,index_fill_.int_Tensor,index_fill.int_Tensor_out>
                       self index value ; dim
index_put              _index_put_impl_ self indices?[] values ; accumulate unsafe
index_put              index_put,index_put_,index_put.out>   self indices?[] values ; accumulate
index_put              _index_put_impl.out> self indices?[] values ; accumulate unsafe
index_reduce           index_reduce,index_reduce_,index_reduce.out> self index source ; dim reduce
                       include_self
index_select           index_select,index_select.out>        self index ; dim
equal                  is_same_size                          self other
item                   _local_scalar_dense                   self
random                 log_normal_,log_normal.out>           self ; mean std
whole                  median,median.out>                    self
view                   movedim.int,movedim,movedim.intlist,moveaxis.int,moveaxis,moveaxis.intlist
                       self ; source destination
multinomial            multinomial,multinomial.out>          self ; num_samples replacement
whole                  nanmedian,nanmedian.out>              self
slice                  narrow                                self ; dim start length
random                 native_dropout,native_dropout.out>    input ; p train
new                    new_empty                             self ; size dtype
new                    new_empty_strided                     self ; size stride dtype
new                    new_full                              self ; size fill_value dtype
new                    new_ones                              self ; size dtype
new                    new_zeros                             self ; size dtype
random                 normal_,normal.out>                   self ; mean std
like                   ones_like                             self ; dtype
view                   permute                               self ; dims
rename                 permute_copy                          self ; dims
like                   rand_like                             self ; dtype
like                   randint_like                          self ; high dtype
like                   randint_like.low_dtype                self ; low high dtype
like                   randn_like                            self ; dtype
view                   repeat                                self ; repeats
view                   tile                                  self ; dims
view                   reshape                               self ; shape
view                   _reshape_alias                        self ; size stride
view                   _reshape_copy                         self ; size
view                   ravel                                 self
turn                   roll,roll.out>                        self ; shifts dims
scatter                scatter.src,scatter_.src,scatter.src_out> self index src ; dim
scatter                scatter.value,scatter_.value,scatter.value_out> self index ; dim value
scatter                scatter_add,scatter_add_,scatter_add.out> self index src ; dim
select                 select.int                            self ; dim index
select_backward        select_backward,select_backward.out>  grad_output ; input_sizes dim index
select_scatter         select_scatter,select_scatter.out>    self src ; dim index
slice                  slice.Tensor                          self ; dim start end step
slice_backward         slice_backward,slice_backward.out> grad_output ; input_sizes dim start end
                       step
slice_scatter          slice_scatter,slice_scatter.out>      self src ; dim start end step
split                  split.Tensor,unsafe_split.Tensor      self ; split_size dim
split                  split_with_sizes,unsafe_split_with_sizes self ; split_sizes dim
split                  split_with_sizes_copy                 self ; split_sizes dim
view                   squeeze,squeeze_                      self
view                   squeeze.dim,squeeze.dims,squeeze_.dim,squeeze_.dims self ; dim
stack                  stack                                 tensors[] ; dim
rename                 t,t_,t_copy                           self
to_copy                _to_copy                              self ; dtype
view                   transpose.int,transpose_,swapdims     self ; dim0 dim1
view                   swapaxes                              self ; axis0 axis1
rename                 transpose_copy.int                    self ; dim0 dim1
whole                  tril,tril_,tril.out>                  self ; diagonal
whole                  triu,triu_,triu.out>                  self ; diagonal
unbind                 unbind.int                            self ; dim
view                   unflatten.int,unflatten               self ; dim sizes
random                 uniform_,uniform.out>                 self ; from to
view                   _unsafe_view                          self ; size
view                   unsqueeze,unsqueeze_                  self ; dim
rename                 unsqueeze_copy                        self ; dim
rename                 squeeze_copy                          self
rename                 squeeze_copy.dim,squeeze_copy.dims    self ; dim
view                   view                                  self ; size
as_complex             view_as_complex                       self
as_real                view_as_real                          self
fourier                _fft_c2c                              self ; dim normalization forward
fourier                _fft_r2c                              self ; dim normalization onesided
fourier                _fft_c2r                              self ; dim normalization last_dim_size
keep                   view.dtype                            self ; dtype
view                   view_copy                             self ; size
keep                   zero_,zero.out>                       self
like                   zeros_like                            self ; dtype
)";

}  // namespace reshard
