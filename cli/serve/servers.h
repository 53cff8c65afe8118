/* The user's servers that run. */
#ifndef PRB_CLI_SERVERS_H
#define PRB_CLI_SERVERS_H

/* A note for each: its address, without its token. */
void prb_servers_note(void);
/* The pid of that for all of the user's processes, of this pid namespace; 0: there is none. */
int prb_servers_of_host(void);

#endif
