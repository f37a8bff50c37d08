/* One training step, from the tokens of a batch to the new parameters. */
#include "step.h"

void train_step_queue(struct rnn *rnn, const struct train_step *step) {
  if (!step->carry_state) rnn_cold(rnn);
  rnn_forward(rnn, step->token);
  rnn_loss(rnn, step->target, 1.0 / ((double)step->batch * rnn->shape.steps));
  rnn_backward(rnn);
  optim_norm(rnn);
  optim_update(rnn, step->optimizer, step->step, step->last_step);
  if (step->carry_state) rnn_carry(rnn);
  rnn->backend->model->figures_note(rnn->model);
}
