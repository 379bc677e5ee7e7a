#pragma once

// The functions of OpenMP (API 5.0, sections 3.2.1, 3.2.3 and 3.2.9) that set how many threads oneDNN starts. omp.h
// belongs to one compiler and its own runtime; these link with GCC's, which oneDNN loads, under every compiler.
extern "C" {
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);
void omp_set_dynamic(int dynamic);
}
