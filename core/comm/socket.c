/* socket.c: sockets with deadlines, and what ranks say about themselves. */
#include "comm/socket.h"
#include "base/error.h"
#include "base/process_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/small.h"

void ggi_comm_machine(char *machine, size_t size)
{
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, machine, size - 1);
    /* Without /proc all machines look the same; then opening the segment fails. */
    machine[got > 0 ? got : 0] = 0;
    if (file >= 0)
        close(file);
}

static void hello_read_process(char *process, size_t size)
{
    char space[40];
    const ssize_t got = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[got > 0 ? got : 0] = 0;
    snprintf(process, size, "%s/%d", space, (int)getpid());
}

void ggi_comm_hello_fill(struct comm_hello *hello, const struct gg_comm_options *options)
{
    memset(hello, 0, sizeof *hello);
    hello->head = (struct comm_head){COMM_MAGIC, COMM_PROTOCOL};
    hello->rank = options->rank;
    hello->size = options->size;
    snprintf(hello->id, sizeof hello->id, "%s", options->id ? options->id : "");
    hello->several = options->flags & GG_COMM_SEVERAL_MACHINES;
    ggi_comm_machine(hello->machine, sizeof hello->machine);
    hello_read_process(hello->process, sizeof hello->process);
}

static int listener_open(const struct addrinfo *address, int backlog)
{
    const int yes = 1;
    const int made = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    /* Connections of a previous communicator, which are closed, do not keep the port. */
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(made, address->ai_addr, address->ai_addrlen) == 0 && listen(made, backlog) == 0)
        return made;
    const int error = errno;
    close(made);
    errno = error;
    return -1;
}

int ggi_comm_listen(const struct addrinfo *addresses, int backlog)
{
    int made = -1;
    for (const struct addrinfo *one = addresses; one && made < 0; one = one->ai_next) {
        made = listener_open(one, backlog);
        if (made < 0 && errno == EADDRINUSE)
            break;
    }
    return made;
}

bool ggi_comm_socket_is_own(int socket)
{
    struct sockaddr_storage here, there;
    socklen_t here_size = sizeof here, there_size = sizeof there;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    return getsockname(socket, (struct sockaddr *)&here, &here_size) == 0 &&
           getpeername(socket, (struct sockaddr *)&there, &there_size) == 0 &&
           here_size == there_size && !memcmp(&here, &there, here_size);
}

const char *ggi_comm_reason(void)
{
    static const char prefix[] = "gg_comm_create: ";
    const char *message = ggi_error_record()->error.message;
    return strncmp(message, prefix, sizeof prefix - 1) ? message : message + sizeof prefix - 1;
}

uint64_t ggi_comm_until(const struct gg_comm_options *options)
{
    const uint64_t now = ggi_now_ns();
    return options->timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + options->timeout_ns;
}

static int until_slice(uint64_t until)
{
    const uint64_t now = ggi_now_ns();
    const uint64_t left = now < until ? until - now : 0;
    return left < GGI_SLICE_NS ? (int)(left / 1000000) + 1 : (int)(GGI_SLICE_NS / 1000000);
}

gg_status ggi_comm_socket_wait(int socket, short events, uint64_t until)
{
    for (;;) {
        struct pollfd poller = {.fd = socket, .events = events};
        const int ready = poll(&poller, 1, until_slice(until));
        if (ready > 0)
            return GG_OK;
        if (ggi_interrupted())
            return ggi_fail(GG_ERR_INTERRUPTED, "gg_comm_create: the wait was interrupted");
        if (ggi_now_ns() >= until)
            return GG_NOT_READY;
    }
}

gg_status ggi_comm_socket_read(int socket, void *data, size_t size, uint64_t until)
{
    size_t got = 0;
    while (got < size) {
        gg_status status = ggi_comm_socket_wait(socket, POLLIN, until);
        if (status)
            return status;
        const ssize_t some = recv(socket, (char *)data + got, size - got, MSG_DONTWAIT);
        if (some == 0 || (some < 0 && errno != EAGAIN && errno != EINTR))
            return GG_ERR_CLOSED;
        got += some > 0 ? (size_t)some : 0;
    }
    return GG_OK;
}

bool ggi_comm_socket_write(int socket, const void *data, size_t size)
{
    ssize_t done;
    do
        done = send(socket, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (done < 0 && errno == EINTR);
    return done == (ssize_t)size;
}

bool ggi_comm_reply_write(int socket, uint32_t kind, const struct comm_ranks *ranks,
                          const char *text)
{
    struct comm_reply reply = {.head = {COMM_MAGIC, COMM_PROTOCOL}, .kind = kind};
    if (ranks)
        reply.ranks = *ranks;
    snprintf(reply.text, sizeof reply.text, "%s", text);
    return ggi_comm_socket_write(socket, &reply, sizeof reply);
}

void ggi_comm_make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

const char *ggi_comm_timeout_text(char *text, size_t size, uint64_t timeout_ns)
{
    snprintf(text, size, "%.10g s", (double)timeout_ns / 1e9);
    return text;
}
