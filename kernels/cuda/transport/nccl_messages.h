/* NCCL's own messages. Left alone it writes them to stdout, among the facts for machines. Here each
 * becomes a line on stderr that names rank and host. NCCL_DEBUG sets how much is said (WARN unless
 * set); a user's own NCCL_DEBUG_FILE is left alone. */
#ifndef FASCICLE_NCCL_MESSAGES_H
#define FASCICLE_NCCL_MESSAGES_H

/* Before the first call of NCCL; further calls do nothing. */
void nccl_messages_start(void);

/* What has been said so far is on stderr when this returns: before the line that ends a job. */
void nccl_messages_flush(void);

#endif
