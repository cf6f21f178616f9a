/* socket.h: what ranks send each other while a communicator is created. */
#ifndef GPUGLUE_COMM_SOCKET_H
#define GPUGLUE_COMM_SOCKET_H

#include "comm/comm.h"

#include <netdb.h>

#define COMM_MAGIC 0x4d4f4347u
/* Increase it with any change of the structs below and of those in the segment (comm.h), whose layout no rank checks. */
#define COMM_PROTOCOL 6

/* Begins each message, in all versions. The rest is read only if both are as expected. */
struct comm_head {
    uint32_t magic, protocol;
};

/* The name of the Unix socket on which a rank gets the file of the shared memory. */
struct comm_pass_name {
    uint32_t size;
    char path[28];
};

#define COMM_MACHINE_SIZE 48
/* The kernel's boot identifier. */
void ggi_comm_machine(char *machine, size_t size);

/* The first message that a rank sends to rank 0. */
struct comm_hello {
    struct comm_head head;
    int32_t rank, size;
    uint32_t several; /* GG_COMM_SEVERAL_MACHINES */
    char id[64];
    char machine[COMM_MACHINE_SIZE];
    char process[64]; /* the namespace of process numbers, and the number */
    struct comm_pass_name pass;
};
void ggi_comm_hello_fill(struct comm_hello *hello, const struct gg_comm_options *options);

/* What follows, in both directions. */
enum {
    COMM_WAIT,    /* rank 0 accepts this rank, and waits for others */
    COMM_MAP,     /* the file of the segment has been passed */
    COMM_APART,   /* there is none: the ranks are on several machines */
    COMM_READY,   /* to rank 0: the segment is mapped */
    COMM_GO,      /* all have mapped it */
    COMM_REFUSED, /* text: why rank 0 does not accept this rank */
    COMM_FAILED,  /* text, ranks: why there will be no communicator */
};
struct comm_reply {
    struct comm_head head;
    uint32_t kind;
    struct comm_ranks ranks;
    char text[600];
};

/* The addresses of rank 0, within the timeout. The caller frees them with freeaddrinfo. In resolve.c. */
gg_status ggi_comm_resolve(const struct gg_comm_options *options, struct addrinfo **out);
/* The point at which the creation must have ended. */
uint64_t ggi_comm_until(const struct gg_comm_options *options);
/* A listener on the first of the addresses that this machine has, or -1 and errno. An address that is in use is not passed
 * over: another program that listens on the first one would get the ranks of this one. */
int ggi_comm_listen(const struct addrinfo *addresses, int backlog);
/* Whether the kernel has connected a socket to itself. It does so if nothing listens on a port from which it also chooses
 * the ports of clients. */
bool ggi_comm_socket_is_own(int socket);
/* Wait for @p events on a socket. GG_NOT_READY: the time has passed. */
gg_status ggi_comm_socket_wait(int socket, short events, uint64_t until);
/* Read all of @p size bytes. GG_NOT_READY: the time has passed. GG_ERR_CLOSED: the other side has ended; no error is
 * recorded. */
gg_status ggi_comm_socket_read(int socket, void *data, size_t size, uint64_t until);
/* Write all, which are few and fit the socket's buffer. False if the other side has ended, or does not read. */
bool ggi_comm_socket_write(int socket, const void *data, size_t size);
bool ggi_comm_reply_write(int socket, uint32_t kind, const struct comm_ranks *ranks,
                          const char *text);
/* ---- link.c ---- */

/* Where the other ranks reach this machine, with port 0: the address of a connection, rather of one to another machine. Returns
 * the size; 0: no connection is left. */
socklen_t ggi_comm_link_address(struct gg_comm *comm, struct sockaddr_storage *address);
bool ggi_comm_is_loopback(const struct sockaddr_storage *address);

/* ---- pass.c ---- */

/* A socket to which rank 0 passes the file, or -1 and errno. */
int ggi_comm_pass_listen(struct comm_pass_name *name);
/* Pass it; -1 only connects. False and errno: EPERM if another user listens there. */
bool ggi_comm_pass_send(const struct comm_pass_name *name, int file);
/* The file, or -1 if a process of this user has passed none so far. */
int ggi_comm_pass_receive(int listener);

/* ---- for messages ---- */

/* The message of the last error of gg_comm_create, without the name of the function. */
const char *ggi_comm_reason(void);
/* Replace control characters, which would change a terminal that shows what another process sent. */
void ggi_comm_make_printable(char *text);
/* "5 s", for messages */
const char *ggi_comm_timeout_text(char *text, size_t size, uint64_t timeout_ns);

#endif
