// SPDX-License-Identifier: BSD-3-Clause
// Linear algebra on matrices in the last two dims, one by one over the batch dims before them, with
// Eigen in double.
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <array>
#include <cmath>

#include "sim/operators/operator_row.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A batch of matrices.
class Batch {
 public:
  Batch(const LocalCall& call, const Array& array) : dtype_(array.dtype) {
    int rank = array.shape.size();
    call.expect(rank >= 2 && is_real(dtype_), "expected matrices of floats");
    rows_ = array.shape[rank - 2], columns_ = array.shape[rank - 1];
    for (int d = 0; d + 2 < rank; ++d) batch_.push_back(array.shape[d]);
    values_ = values<double>(array);
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t count() const { return element_count(batch_); }
  DType dtype() const { return dtype_; }
  Matrix at(std::int64_t i) const {
    return Eigen::Map<const Matrix>(values_.data() + i * rows_ * columns_, rows_, columns_);
  }
  // The batch dims, then these dims.
  Shape with(std::initializer_list<std::int64_t> dims) const {
    Shape out = batch_;
    for (std::int64_t dim : dims) out.push_back(dim);
    return out;
  }

 private:
  DType dtype_;
  Shape batch_;
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<double> values_;
};

// Collects one result, matrix after matrix.
class Collected {
 public:
  void add(const Matrix& matrix) {
    for (Eigen::Index i = 0; i < matrix.rows(); ++i)
      for (Eigen::Index j = 0; j < matrix.cols(); ++j) all_.push_back(matrix(i, j));
  }
  void add(double value) { all_.push_back(value); }
  Array array(DType dtype, const Shape& shape) const { return Array::of(dtype, shape, all_); }

 private:
  std::vector<double> all_;
};

Batch square(const LocalCall& call, const Array& array) {
  Batch out(call, array);
  call.expect(out.rows() == out.columns(), "expected square matrices");
  return out;
}

Array no_errors(const Batch& of) { return Array::zeros(DType::I32, of.with({})); }

// Applies `make` to each matrix; it returns a matrix of rows x columns.
template <class Make>
Array each(const Batch& of, std::int64_t rows, std::int64_t columns, Make&& make) {
  Collected out;
  for (std::int64_t i = 0; i < of.count(); ++i) out.add(make(of.at(i)));
  return out.array(of.dtype(), of.with({rows, columns}));
}

// exp(A): the Taylor series of A / 2^halvings, then squared `halvings` times.
Matrix exponential(const Matrix& a) {
  double size = a.size() ? a.cwiseAbs().rowwise().sum().maxCoeff() : 0;
  int halvings = size > 0.25 && std::isfinite(size) ? std::ilogb(size) + 3 : 0;
  Matrix scaled = a / std::ldexp(1, halvings), out = Matrix::Identity(a.rows(), a.cols()),
         term = out;
  for (int k = 1; k <= 20; ++k) out += term = term * scaled / k;
  for (int k = 0; k < halvings; ++k) out = out * out;
  return out;
}

ArrayResults matrix_exp(const LocalCall& call) {
  Batch a = square(call, call.tensor(0));
  return results(each(a, a.rows(), a.rows(), exponential));
}

ArrayResults inverse(const LocalCall& call) {
  Batch a = square(call, call.tensor(0));
  return results(each(a, a.rows(), a.rows(), [](const Matrix& m) { return Matrix(m.inverse()); }),
                 no_errors(a));
}

// The Cholesky factor. `failed`: the first column, from 1, at which the matrix is not positive
// definite; 0: none.
Matrix cholesky_of(Matrix a, bool upper, double& failed) {
  if (upper) a.transposeInPlace();
  failed = 0;
  for (Eigen::Index j = 0; j < a.rows(); ++j) {
    for (Eigen::Index k = 0; k < j; ++k) a(j, j) -= a(j, k) * a(j, k);
    if (!(a(j, j) > 0) && failed == 0) failed = static_cast<double>(j + 1);
    a(j, j) = std::sqrt(a(j, j));
    for (Eigen::Index i = j + 1; i < a.rows(); ++i) {
      for (Eigen::Index k = 0; k < j; ++k) a(i, j) -= a(i, k) * a(j, k);
      a(i, j) /= a(j, j);
      a(j, i) = 0;
    }
  }
  if (upper) a.transposeInPlace();
  return a;
}

ArrayResults cholesky(const LocalCall& call) {
  Batch a = square(call, call.tensor(0));
  bool upper = call.attributes.boolean("upper", false);
  Collected info;
  Array out = each(a, a.rows(), a.rows(), [&](const Matrix& m) {
    double failed = 0;
    Matrix made = cholesky_of(m, upper, failed);
    info.add(failed);
    return made;
  });
  return results(std::move(out), info.array(DType::I32, a.with({})));
}

// The lower factor L, from L itself or from its transpose.
Matrix lower_of(const Matrix& factor, bool upper) {
  Matrix out = upper ? Matrix(factor.transpose()) : factor;
  return out.triangularView<Eigen::Lower>();
}

ArrayResults cholesky_inverse(const LocalCall& call) {
  Batch a = square(call, call.tensor(0));
  bool upper = call.attributes.boolean("upper", false);
  return results(each(a, a.rows(), a.rows(), [&](const Matrix& m) {
    Matrix l = lower_of(m, upper);
    return Matrix((l * l.transpose()).inverse());
  }));
}

// ---- LU

struct Factors {
  Matrix lu;
  std::vector<double> pivots;   // by row: the row that it was swapped with, from 1
  double sign = 1, failed = 0;  // failed: first zero pivot, from 1; 0: none
};

Factors factors_of(Matrix a) {
  Factors out;
  Eigen::Index least = std::min(a.rows(), a.cols());
  for (Eigen::Index k = 0; k < least; ++k) {
    Eigen::Index best = k;
    for (Eigen::Index i = k + 1; i < a.rows(); ++i)
      if (std::fabs(a(i, k)) > std::fabs(a(best, k))) best = i;
    if (best != k) {
      a.row(k).swap(a.row(best));
      out.sign = -out.sign;
    }
    out.pivots.push_back(static_cast<double>(best + 1));
    if (a(k, k) == 0) {
      if (out.failed == 0) out.failed = static_cast<double>(k + 1);
      continue;
    }
    for (Eigen::Index i = k + 1; i < a.rows(); ++i) {
      a(i, k) /= a(k, k);
      for (Eigen::Index j = k + 1; j < a.cols(); ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  out.lu = std::move(a);
  return out;
}

struct FactorArrays {
  Collected lu, pivots, info;
  void add(const Factors& factors) {
    lu.add(factors.lu);
    for (double pivot : factors.pivots) pivots.add(pivot);
    info.add(factors.failed);
  }
  void append(const Batch& of, bool with_info, ArrayResults& out) const {
    out.emplace_back(lu.array(of.dtype(), of.with({of.rows(), of.columns()})));
    out.emplace_back(pivots.array(DType::I32, of.with({std::min(of.rows(), of.columns())})));
    if (with_info) out.emplace_back(info.array(DType::I32, of.with({})));
  }
};

ArrayResults lu_factor(const LocalCall& call) {
  Batch a(call, call.tensor(0));
  call.expect(call.attributes.boolean("pivot", true), "expected pivot");
  FactorArrays all;
  for (std::int64_t i = 0; i < a.count(); ++i) all.add(factors_of(a.at(i)));
  ArrayResults out;
  all.append(a, true, out);
  return out;
}

template <bool kLog>
ArrayResults determinant(const LocalCall& call) {
  Batch a = square(call, call.tensor(0));
  FactorArrays all;
  Collected signs, sizes;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    Factors factors = factors_of(a.at(i).transpose());  // PyTorch returns those of the transpose
    double sign = factors.sign, size = kLog ? 0 : 1;
    for (Eigen::Index k = 0; k < factors.lu.rows(); ++k) {
      double value = factors.lu(k, k);
      if (kLog) sign *= value > 0 ? 1 : value < 0 ? -1 : value;
      size = kLog ? size + std::log(std::fabs(value)) : size * value;
    }
    signs.add(sign);
    sizes.add(kLog ? size : sign * size);
    all.add(factors);
  }
  ArrayResults out;
  if (kLog) out.emplace_back(signs.array(a.dtype(), a.with({})));
  out.emplace_back(sizes.array(a.dtype(), a.with({})));
  all.append(a, false, out);
  return out;
}

// Solves A x = b from the factors and pivots of A.
Matrix solved(const Matrix& lu, const std::vector<double>& pivots, Matrix b) {
  for (std::size_t k = 0; k < pivots.size(); ++k)
    b.row(static_cast<Eigen::Index>(k)).swap(b.row(static_cast<Eigen::Index>(pivots[k]) - 1));
  lu.triangularView<Eigen::UnitLower>().solveInPlace(b);
  lu.triangularView<Eigen::Upper>().solveInPlace(b);
  return b;
}

// Right sides are matrices, or vectors if they have one dim less.
ArrayResults solve(const LocalCall& call) {
  Batch a = square(call, call.tensor(0));
  const Array& right = call.tensor(1);
  call.expect(call.attributes.boolean("left", true), "expected left");
  bool vectors = right.shape == a.with({a.rows()});
  Array matrices = right;
  if (vectors) matrices.shape.push_back(1);
  Batch b(call, matrices);
  call.expect(b.rows() == a.rows() && b.with({}) == a.with({}), "expected right sides that fit");
  FactorArrays all;
  Collected made;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    Factors factors = factors_of(a.at(i));
    made.add(solved(factors.lu, factors.pivots, b.at(i)));
    all.add(factors);
  }
  ArrayResults out = results(made.array(a.dtype(), right.shape));
  all.append(a, true, out);
  return out;
}

ArrayResults lu_solve(const LocalCall& call) {
  Batch lu = square(call, call.tensor(0)), b(call, call.tensor(2));
  call.expect(call.attributes.boolean("left", true) && !call.attributes.boolean("adjoint", false),
              "expected left, and no adjoint");
  std::vector<double> pivots = values<double>(call.tensor(1));
  auto n = to_index(lu.rows());
  call.expect(
      b.rows() == lu.rows() && b.count() == lu.count() && pivots.size() == n * to_index(lu.count()),
      "expected pivots and right sides that fit");
  Collected out;
  for (std::int64_t i = 0; i < b.count(); ++i) {
    auto first = pivots.begin() + static_cast<std::ptrdiff_t>(to_index(i) * n);
    std::vector<double> own(first, first + static_cast<std::ptrdiff_t>(n));
    for (double& pivot : own) pivot = std::clamp<double>(pivot, 1, static_cast<double>(n));
    out.add(solved(lu.at(i), own, b.at(i)));
  }
  return results(out.array(b.dtype(), b.with({b.rows(), b.columns()})));
}

ArrayResults solve_triangular(const LocalCall& call) {
  Batch a = square(call, call.tensor(0)), b(call, call.tensor(1));
  bool upper = call.attributes.boolean("upper", false),
       unit = call.attributes.boolean("unitriangular", false);
  call.expect(call.attributes.boolean("left", true), "expected left");
  call.expect(b.rows() == a.rows() && b.count() % std::max<std::int64_t>(a.count(), 1) == 0,
              "expected right sides that fit");
  Collected out;
  for (std::int64_t i = 0; i < b.count(); ++i) {
    Matrix m = a.at(i % a.count()), x = b.at(i);
    if (unit) m.diagonal().setOnes();
    if (upper)
      m.triangularView<Eigen::Upper>().solveInPlace(x);
    else
      m.triangularView<Eigen::Lower>().solveInPlace(x);
    out.add(x);
  }
  return results(out.array(b.dtype(), b.with({b.rows(), b.columns()})));
}

ArrayResults cholesky_solve(const LocalCall& call) {
  Batch b(call, call.tensor(0)), factor = square(call, call.tensor(1));
  bool upper = call.attributes.boolean("upper", false);
  call.expect(b.rows() == factor.rows() && b.count() == factor.count(),
              "expected right sides that fit");
  Collected out;
  for (std::int64_t i = 0; i < b.count(); ++i) {
    Matrix l = lower_of(factor.at(i), upper), x = b.at(i);
    l.triangularView<Eigen::Lower>().solveInPlace(x);
    l.transpose().triangularView<Eigen::Upper>().solveInPlace(x);
    out.add(x);
  }
  return results(out.array(b.dtype(), b.with({b.rows(), b.columns()})));
}

// ---- decompositions

ArrayResults qr(const LocalCall& call) {
  Batch a(call, call.tensor(0));
  std::string mode = call.attributes.text("mode", "reduced");
  std::int64_t m = a.rows(), n = a.columns(), inner = mode == "complete" ? m : std::min(m, n);
  Collected q, r;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    Eigen::HouseholderQR<Matrix> made(a.at(i));
    q.add(made.householderQ() * Matrix::Identity(m, inner));
    r.add(Matrix(made.matrixQR().topRows(inner).triangularView<Eigen::Upper>()));
  }
  Array none = Array::zeros(a.dtype(), Shape{0});
  return results(mode == "r" ? none : q.array(a.dtype(), a.with({m, inner})),
                 r.array(a.dtype(), a.with({inner, n})));
}

ArrayResults eigh(const LocalCall& call) {
  Batch a = square(call, call.tensor(0));
  bool upper = call.attributes.text("UPLO", "L") == "U";
  Collected found, vectors;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    Matrix m = a.at(i);
    if (upper) m.transposeInPlace();
    Eigen::SelfAdjointEigenSolver<Matrix> made(m);
    found.add(Matrix(made.eigenvalues()));
    vectors.add(made.eigenvectors());
  }
  return results(found.array(a.dtype(), a.with({a.rows()})),
                 vectors.array(a.dtype(), a.with({a.rows(), a.rows()})));
}

ArrayResults svd(const LocalCall& call) {
  Batch a(call, call.tensor(0));
  bool full = call.attributes.boolean("full_matrices", false),
       vectors = call.attributes.boolean("compute_uv", true);
  std::int64_t m = a.rows(), n = a.columns(), least = std::min(m, n);
  call.expect(least > 0, "expected matrices with elements");
  unsigned options =
      full ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
  Collected u, s, v;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    Eigen::MatrixXd each = a.at(i);
    call.expect(each.allFinite(), "expected finite numbers");
    Eigen::JacobiSVD<Eigen::MatrixXd> made(each, options);
    u.add(Matrix(made.matrixU()));
    s.add(Matrix(made.singularValues()));
    v.add(Matrix(made.matrixV().transpose()));
  }
  Array none = Array::zeros(a.dtype(), Shape{0});
  Shape left = a.with({m, full ? m : least}), right = a.with({full ? n : least, n});
  return results(vectors ? u.array(a.dtype(), left) : none, s.array(a.dtype(), a.with({least})),
                 vectors ? v.array(a.dtype(), right) : none);
}

constexpr std::array kLinalgRows{
    OperatorRow{"linalg_matrix_exp", matrix_exp},
    OperatorRow{"linalg_inv_ex", inverse, 2},
    OperatorRow{"linalg_cholesky_ex", cholesky, 2},
    OperatorRow{"cholesky_inverse", cholesky_inverse},
    OperatorRow{"cholesky_solve", cholesky_solve},
    OperatorRow{"linalg_lu_factor_ex", lu_factor, 3},
    OperatorRow{"linalg_lu_solve", lu_solve},
    OperatorRow{"_linalg_det", determinant<false>, 3},
    OperatorRow{"_linalg_slogdet", determinant<true>, 4},
    OperatorRow{"_linalg_solve_ex", solve, 4},
    OperatorRow{"linalg_solve_triangular", solve_triangular},
    OperatorRow{"linalg_qr", qr, 2},
    OperatorRow{"_linalg_eigh", eigh, 2},
    OperatorRow{"_linalg_svd", svd, 3},
};

}  // namespace

std::span<const OperatorRow> linalg_rows() { return kLinalgRows; }

}  // namespace reshard::sim
