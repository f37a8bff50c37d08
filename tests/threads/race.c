/* Is a race seen at all? `race good` sums with a reduction and a barrier, `race bad` forgets both:
 * ThreadSanitizer must be silent about the first and report the second. */
#include <stdio.h>
#include <string.h>

enum { N = 1000 };

static long sum_right(long *x) {
  long sum = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp for
    for (int i = 0; i < N; i++) x[i] = i;
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < N; i++) sum += x[N - 1 - i];
  }
  return sum;
}

static long sum_wrong(long *x) {
  long sum = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp for nowait
    for (int i = 0; i < N; i++) x[i] = i;
#pragma omp for
    for (int i = 0; i < N; i++) sum += x[N - 1 - i];
  }
  return sum;
}

int main(int argc, char **argv) {
  static long x[N];
  const int bad = argc > 1 && !strcmp(argv[1], "bad");
  printf("%ld\n", bad ? sum_wrong(x) : sum_right(x));
  return 0;
}
