/* The lock: who waits goes before who comes back, and nothing interrupts its holder. */
#include "shim.h"

static pthread_mutex_t turnstile = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hold held_by_fork;

struct hold hold(void)
{
    struct hold held;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &held.signals);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held.cancellation);
    pthread_mutex_lock(&turnstile);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&turnstile);
    return held;
}

static void let_through(struct hold held)
{
    pthread_setcancelstate(held.cancellation, NULL);
    pthread_sigmask(SIG_SETMASK, &held.signals, NULL);
}

void release(struct hold held)
{
    pthread_mutex_unlock(&lock);
    let_through(held);
}

void hold_for_fork(void)
{
    struct hold held = hold();
    held_by_fork = held;
}

void release_in_parent(void) { release(held_by_fork); }

void renew_in_child(void)
{
    pthread_mutex_init(&turnstile, NULL);
    pthread_mutex_init(&lock, NULL);
}

void let_through_in_child(void) { let_through(held_by_fork); }
