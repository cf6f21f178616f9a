/* resolve.c: the addresses of rank 0. getaddrinfo has no time limit, and a name server may not answer: so names are looked up on a
 * thread of their own. */
#include "base/condition.h"
#include "base/error.h"
#include "base/process_state.h"
#include "base/thread.h"
#include "comm/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/small.h"

struct lookup {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, left; /* left: the caller waits no more, and the thread frees this */
    int error;
    struct addrinfo *found;
    char host[256], port[16];
};

static void lookup_free(struct lookup *self)
{
    if (self->found)
        freeaddrinfo(self->found);
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->changed);
    free(self);
}

static int lookup_now(const struct lookup *self, int flags, struct addrinfo **out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    return getaddrinfo(self->host, self->port, &hints, out);
}

static void *lookup_run(void *argument)
{
    struct lookup *self = argument;
    struct addrinfo *found = NULL;
    pthread_setname_np(pthread_self(), "gpuglue-lookup");
    const int error = lookup_now(self, 0, &found);
    pthread_mutex_lock(&self->lock);
    self->error = error;
    self->found = found;
    self->done = true;
    const bool left = self->left;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (left)
        lookup_free(self);
    return NULL;
}

static gg_status lookup_late(const struct lookup *self, const struct gg_comm_options *options)
{
    const struct comm_ranks none = {{0}};
    char time[32];
    return ggi_comm_fail(&none,
                         "gg_comm_create: the address of host '%s' was not found within %s: no "
                         "name server has answered; give the address instead of the name",
                         self->host, ggi_comm_timeout_text(time, sizeof time, options->timeout_ns));
}

/* With the lock held. */
static gg_status lookup_wait(struct lookup *self, const struct gg_comm_options *options)
{
    const uint64_t until = ggi_comm_until(options);
    while (!self->done) {
        const uint64_t now = ggi_now_ns();
        if (now >= until)
            return lookup_late(self, options);
        const uint64_t end = until - now < GGI_SLICE_NS ? until : now + GGI_SLICE_NS;
        const struct timespec limit = {.tv_sec = (time_t)(end / 1000000000u),
                                       .tv_nsec = (long)(end % 1000000000u)};
        pthread_cond_timedwait(&self->changed, &self->lock, &limit);
        pthread_mutex_unlock(&self->lock);
        const bool interrupted = ggi_interrupted(); /* the hook may run any code */
        pthread_mutex_lock(&self->lock);
        if (interrupted)
            return ggi_fail(GG_ERR_INTERRUPTED, "gg_comm_create: the wait was interrupted");
    }
    return GG_OK;
}

/* An address needs no thread. */
static gg_status lookup_run_bounded(struct lookup *self, const struct gg_comm_options *options,
                                    bool *left)
{
    if (lookup_now(self, AI_NUMERICHOST, &self->found) == 0)
        return GG_OK;
    gg_status status = ggi_thread_start(lookup_run, self);
    if (status)
        return status;
    pthread_mutex_lock(&self->lock);
    status = lookup_wait(self, options);
    *left = self->left = !self->done;
    pthread_mutex_unlock(&self->lock);
    return status;
}

static struct lookup *lookup_new(const struct gg_comm_options *options)
{
    struct lookup *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    pthread_mutex_init(&self->lock, NULL);
    ggi_condition_init(&self->changed);
    snprintf(self->host, sizeof self->host, "%s", options->host ? options->host : "127.0.0.1");
    snprintf(self->port, sizeof self->port, "%d", options->port);
    return self;
}

gg_status ggi_comm_resolve(const struct gg_comm_options *options, struct addrinfo **out)
{
    struct lookup *self = lookup_new(options);
    if (!self)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_create: no memory to find rank 0");
    bool left = false;
    gg_status status = lookup_run_bounded(self, options, &left);
    if (left)
        return status;
    if (!status && self->error)
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT,
                          "gg_comm_create: host is '%s', which has no address: %s", self->host,
                          gai_strerror(self->error));
    if (!status) {
        *out = self->found;
        self->found = NULL;
    }
    lookup_free(self);
    return status;
}
