#include "process/interrupt.h"

#include <csignal>
#include <iterator>

namespace tprimat {
namespace {

constexpr int k_signals[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t g_interrupts = 0;  // a signal handler can write only to a global
struct sigaction g_before[std::size(k_signals)];

void count_interrupt(int) { g_interrupts = g_interrupts + 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  g_interrupts = 0;
  struct sigaction action = {};
  action.sa_handler = count_interrupt;  // no SA_RESTART: poll() must return
  for (size_t i = 0; i < std::size(k_signals); ++i) {
    ::sigaction(k_signals[i], &action, &g_before[i]);
    const bool under_nohup = k_signals[i] == SIGHUP && g_before[i].sa_handler == SIG_IGN;
    if (under_nohup) ::sigaction(SIGHUP, &g_before[i], nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < std::size(k_signals); ++i) ::sigaction(k_signals[i], &g_before[i], nullptr);
}

int InterruptGuard::count() const { return static_cast<int>(g_interrupts); }

void block_signals_in_this_thread() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace tprimat
