// SPDX-License-Identifier: BSD-3-Clause
// One of the programs that mpi_peers.py compares: ScaLAPACK's psgemr2d, an N x N float32 matrix
// from one block of rows per process to one block of columns, or the other way. ScaLAPACK's arrays
// are column-major, so "columns to rows" moves the same memory as S(0) -> S(1) of a row-major
// tensor. Prints the median time of a transfer in microseconds: from a barrier to the last rank's
// end.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
void Cblacs_pinfo(int* rank, int* size);
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void descinit_(int* descriptor, const int* m, const int* n, const int* block_rows,
               const int* block_columns, const int* first_row, const int* first_column,
               const int* context, const int* leading, int* info);
void psgemr2d_(const int* m, const int* n, const float* a, const int* ia, const int* ja,
               const int* a_descriptor, float* b, const int* ib, const int* jb,
               const int* b_descriptor, const int* context);
}

namespace {

constexpr int kZero = 0, kOne = 1;

// One block per process of a matrix that is cut along its rows or its columns.
struct Blocks {
  int context = 0, rows = 0, columns = 0, first_row = 0, first_column = 0;
  int descriptor[9] = {};
  std::vector<float> values;

  Blocks(int n, int rank, int size, bool by_rows)
      : rows(by_rows ? n / size : n), columns(by_rows ? n : n / size) {
    (by_rows ? first_row : first_column) = rank * (n / size);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", by_rows ? size : 1, by_rows ? 1 : size);
    int info = 0;
    descinit_(descriptor, &n, &n, &rows, &columns, &kZero, &kZero, &context, &rows, &info);
    if (info != 0) std::exit(3);
    values.assign(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), 0.0f);
  }
  // Every element's value is a function of its place.
  template <class Visit>
  void for_each(int n, const Visit& visit) {
    for (int c = 0; c < columns; ++c)
      for (int r = 0; r < rows; ++r)
        visit(values[static_cast<std::size_t>(c) * static_cast<std::size_t>(rows) +
                     static_cast<std::size_t>(r)],
              static_cast<float>((static_cast<long long>(first_row + r) * n + first_column + c) %
                                 16777213));
  }
};

int run(int n, int repetitions, bool from_rows) {
  int rank = 0, size = 1;
  Cblacs_pinfo(&rank, &size);
  Blocks from(n, rank, size, from_rows), to(n, rank, size, !from_rows);
  from.for_each(n, [](float& value, float expected) { value = expected; });
  std::vector<double> times;
  for (int i = -2; i < repetitions; ++i) {  // two to warm up
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    psgemr2d_(&n, &n, from.values.data(), &kOne, &kOne, from.descriptor, to.values.data(), &kOne,
              &kOne, to.descriptor, &from.context);
    double mine = MPI_Wtime() - begin, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= 0) times.push_back(slowest);
  }
  bool wrong = false;
  to.for_each(n, [&](float& value, float expected) { wrong = wrong || value != expected; });
  if (wrong) {
    std::fprintf(stderr, "rank %d: wrong data\n", rank);
    return 1;
  }
  std::sort(times.begin(), times.end());
  if (rank == 0) std::printf("%.1f\n", times[times.size() / 2] * 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = run(argc > 1 ? std::atoi(argv[1]) : 4096, argc > 2 ? std::atoi(argv[2]) : 9,
                 argc > 3 && std::strcmp(argv[3], "rows") == 0);
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}
