#pragma once

namespace tprimat {

// Φ(x) and its inverse; `probability` strictly between 0 and 1.
double normal_cdf(double x);
double normal_quantile(double probability);

// Student's t: P(T > t), by the incomplete beta function (DLMF 8.17.22), and the quantile that inverts it, both to
// about 1e-10. Degrees of freedom may be fractional, at least 1.
double student_t_tail(double t, double degrees_of_freedom);
double student_t_quantile(double probability, double degrees_of_freedom);

}  // namespace tprimat
