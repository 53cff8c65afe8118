/* The man page in roff, from the descriptors. */
#ifndef PRB_CLI_MAN_H
#define PRB_CLI_MAN_H

/* On standard output. */
void prb_man_print(void);

#endif
