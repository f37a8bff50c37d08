/* Needs no GPU: the layouts that the host counts with are those that the kernels are launched with.
 */
#include "kernels/cuda/layout/recur.h"
#include "kernels/cuda/recur/device.h"

#include <stdio.h>

int main(void) {
  int n = 0, wrong = 0;
  for (int batch = 1; batch <= 160; batch++)
    for (int mixed = 0; mixed < 2; mixed++)
      for (int narrow = 0; narrow < 2; narrow++)
        for (int small = 0; small <= narrow; small++, n++) {
          const struct recur_shape_on_device shape =
              recur_device_shape(batch, mixed, small, narrow);
          if (shape.lines == recur_stands_in_lines(batch, mixed, narrow)) continue;
          printf("batch %d, mixed %d, narrow %d: lines %d\n", batch, mixed, narrow, shape.lines);
          wrong++;
        }
  printf("%d layouts, %d differ\n", n, wrong);
  return wrong > 0;
}
