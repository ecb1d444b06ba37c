// sluice serve: opens every door that the configuration names, until SIGTERM or SIGINT; SIGHUP
// reloads. Without a configuration it runs the demo.
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/sluice/commands.h"
#include "apps/sluice/demo.h"
#include "sluice/base/log.h"
#include "sluice/config/load.h"
#include "sluice/config/report.h"
#include "sluice/net/address.h"
#include "sluice/server/server.h"

namespace sluice::app {
namespace {

namespace asio = boost::asio;

// Signals, from the moment this is made. One that asks for the end while the doors are being
// opened, which may take as long as a store or a name server likes, is followed at once.
//
// A reload has a thread of its own, for it may wait for a name server, and the end must not wait
// for it. A SIGHUP that comes meanwhile is followed by one more reload.
class Signals {
 public:
  using Started = absl::StatusOr<std::unique_ptr<Server>>;

  // What `start` returns, which is asked to give up when a signal asks for the end.
  Started Start(const std::function<Started(std::stop_token)>& start) {
    Started server = absl::CancelledError();
    std::jthread starting([&](std::stop_token stop) {
      server = start(std::move(stop));
      asio::post(context_, [this] { context_.stop(); });
    });
    WaitWhile(starting);
    context_.run();
    starting.join();
    signals_.cancel();  // who is to wait next waits for other things
    context_.restart();
    context_.poll();
    return server;
  }

  // Reloads on SIGHUP; returns when another one asks for the end, and load balancers have had the
  // time to notice, or a further signal says not to wait for them.
  void ServeUntilTheEnd(Server& server) {
    Run(server);
    const Duration delay = server.Leave();
    if (delay == Duration{0}) return;
    log::Info("leaving", {{"for_ms", std::chrono::ceil<std::chrono::milliseconds>(delay).count()}});
    timer_.expires_after(delay);
    timer_.async_wait([this](boost::system::error_code) { context_.stop(); });
    Run(server);
  }

 private:
  void WaitWhile(std::jthread& starting) {
    signals_.async_wait([this, &starting](boost::system::error_code error, int signal) {
      if (error) return;
      if (signal == SIGHUP) {
        again_ = true;
      } else {
        log::Info("stopping", {{"signal", signal}});
        stopped_ = true;
        starting.request_stop();
      }
      WaitWhile(starting);
    });
  }

  // Until a signal asks for the end, or the timer does.
  void Run(Server& server) {
    if (std::exchange(stopped_, false)) return;
    if (std::exchange(again_, false)) Reload(server);
    Wait(server);
    context_.restart();
    context_.run();
    reload_ = {};  // gives up, and ends
    again_ = false;
  }

  void Wait(Server& server) {
    signals_.async_wait([this, &server](boost::system::error_code error, int signal) {
      if (error) return;
      if (signal != SIGHUP) {
        log::Info("stopping", {{"signal", signal}});
        context_.stop();
        return;
      }
      again_ = reload_.joinable();
      if (!again_) Reload(server);
      Wait(server);
    });
  }

  void Reload(Server& server) {
    reload_ = std::jthread([this, &server](const std::stop_token& stop) {
      server.Reload(stop);
      asio::post(context_, [this, &server] {
        reload_ = {};
        if (std::exchange(again_, false)) Reload(server);
      });
    });
  }

  asio::io_context context_;
  asio::steady_timer timer_{context_};
  asio::signal_set signals_{context_, SIGINT, SIGTERM, SIGHUP};
  std::jthread reload_;
  bool again_ = false;    // once the one that runs has ended, or the start
  bool stopped_ = false;  // during the start
};

int Serve(config::LoadResult loaded, Server::Loader loader, const std::string& welcome) {
  std::cerr << loaded.diagnostics.Text() << std::flush;
  if (!loaded.config) return config::kExitFailed;
  if (!loaded.config->gateway && !loaded.config->admin) {
    std::cerr << "sluice: the configuration opens no door; add `gateway` or `admin`\n";
    return config::kExitFailed;
  }
  log::Configure(loaded.config->log.level, loaded.config->log.format);
  Signals signals;
  auto server = signals.Start([&](std::stop_token stop) {
    return Server::Start(*std::move(loaded.config), std::move(loader), net::Resolve,
                         std::move(stop));
  });
  if (absl::IsCancelled(server.status())) {
    log::Info("stopped");
    return config::kExitDone;
  }
  if (!server.ok()) {
    std::cerr << "sluice: " << server.status().message() << "\n";
    return config::kExitFailed;
  }
  std::cout << welcome << std::flush;
  signals.ServeUntilTheEnd(**server);
  const bool kept = (*server)->Stop();
  log::Info("stopped");
  return kept ? config::kExitDone : config::kExitFailed;
}

int ServeFile(const std::string& path) {
  const auto load = [path](std::uint64_t generation) { return config::Load(path, generation); };
  return Serve(load(1), load, "");
}

int ServeDemo() {
  auto demo = Demo::Start();
  if (!demo.ok()) {
    std::cerr << "sluice: " << demo.status().message() << "\n";
    return config::kExitFailed;
  }
  const auto load = [text = (*demo)->config()](std::uint64_t generation) {
    return config::LoadText("demo", text, ".", generation);
  };
  return Serve(load(1), load, (*demo)->Welcome());
}

}  // namespace

void AddServe(CLI::App& program, int& exit_code) {
  CLI::App* command =
      program.add_subcommand("serve", "Open the doors; without a file a demo on port 8080");
  auto path = std::make_shared<std::string>();
  command->add_option("config,--config", *path, "The configuration, YAML")->type_name("FILE");
  command->callback(
      [path, &exit_code] { exit_code = path->empty() ? ServeDemo() : ServeFile(*path); });
}

}  // namespace sluice::app
