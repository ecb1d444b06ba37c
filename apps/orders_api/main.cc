// orders_api --listen HOST:PORT: see orders_api.h. Prints where it listens and serves until SIGINT
// or SIGTERM. Exit codes: 0 ended in order, 2 could not listen.
#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "apps/orders_api/orders_api.h"

int main(int argc, char** argv) {
  using sluice::net::EventLoops;
  using sluice::orders_api::OrdersApi;

  std::string listen = "127.0.0.1:9000";
  std::size_t threads = 1;
  CLI::App app("A small Orders API, to stand behind Sluice.", "orders_api");
  app.add_option("--listen", listen, "HOST:PORT; port 0 takes a free one")->capture_default_str();
  app.add_option("--threads", threads, "event loops; 0 for one per core")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  // Blocked in every thread, so that sigwait below is the one to see them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const auto where = sluice::net::ParseHostPort(listen);
  if (!where.ok()) {
    std::fprintf(stderr, "orders_api: %s\n", std::string(where.status().message()).c_str());
    return 2;
  }
  EventLoops loops(threads);
  auto api = OrdersApi::Start(loops, *where);
  if (!api.ok()) {
    std::fprintf(stderr, "orders_api: %s\n", std::string(api.status().message()).c_str());
    return 2;
  }
  loops.Start();
  std::printf("orders_api listening on http://%s\n",
              sluice::net::ToString((*api)->endpoint()).c_str());
  std::fflush(stdout);

  int signal = 0;
  sigwait(&signals, &signal);
  (*api)->Drain(std::chrono::seconds(5));
  loops.Stop();
  return 0;
}
