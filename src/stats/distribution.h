#pragma once

namespace tprimat {

// Φ(x) and its inverse; `probability` strictly between 0 and 1.
double normal_cdf(double x);
double normal_quantile(double probability);

// Quantile of Student's t. Exact for 1 and 2 degrees of freedom; above, the expansion of Abramowitz and Stegun 26.7.5,
// which is within 0.5 % at 3 degrees and better beyond for probabilities in 0.001..0.999. Degrees of freedom may be
// fractional, at least 1.
double student_t_quantile(double probability, double degrees_of_freedom);

}  // namespace tprimat
