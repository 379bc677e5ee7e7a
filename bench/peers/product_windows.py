"""The shapes of products that `tprimat probe` tries, and how fast the fastest window of a product is."""

import time

SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (2048, 4096, 1024), (2048, 1024, 4096), (2048, 8192, 1024))  # m, n, k
WINDOW_SECONDS, WINDOWS = 0.05, 8


def fastest_seconds(work):
    """Of one repetition, in the fastest of some windows; the first window warms up."""
    best = float("inf")
    for window in range(WINDOWS + 1):
        begin, repetitions = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - begin) < WINDOW_SECONDS:
            work()
            repetitions += 1
        best = min(best, elapsed / repetitions) if window else best
    return best


def fastest_product(forms_of_shape):
    """forms_of_shape(m, n, k) names some ways to one product; what is returned of the fastest is ready for JSON."""
    best = {"flops_per_second": 0.0}
    for m, n, k in SHAPES:
        for form, work in forms_of_shape(m, n, k).items():
            rate = 2.0 * m * n * k / fastest_seconds(work)
            if rate > best["flops_per_second"]:
                best = {"flops_per_second": rate, "form": form, "shape": [m, n, k]}
    return best
