// A redis-server of a test's own, as Debian has it: on a Unix socket in a folder that goes away
// with it, on a free port too if asked; nothing of it reaches a disk that lasts.
//
//   RedisServer server({.listens = RedisServer::Listens::kTcp, .more = {"--requirepass", "x"}});
//   server.Ask({"AUTH", "x"});
//   server.Kill();      // as kill -9 does
//   server.Start();     // on the same socket and port, empty
//
// Where no server can be started the test fails, and says what the server said. Every wait ends
// after 20 s, with a test failure. To be used on the thread that runs the tests: the server ends
// with the thread that started it, however that ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/net/redis_reply.h"

namespace sluice::net::testing {

// A blocking connection, for what a test asks a server by itself. Failures fail the test.
class RawRedis {
 public:
  explicit RawRedis(const std::string& unix_socket);
  explicit RawRedis(std::uint16_t port);
  RawRedis(const RawRedis&) = delete;
  RawRedis& operator=(const RawRedis&) = delete;
  ~RawRedis();

  // The next reply to all that was sent; an error of the server's is one. A nil when it fails.
  RedisReply Read();
  // Bytes of one or more commands.
  void Send(std::string_view bytes);
  RedisReply Ask(std::initializer_list<std::string_view> words);

 private:
  int socket_ = -1;
  RedisReplyReader reader_;
};

class RedisServer {
 public:
  enum class Listens : std::uint8_t {
    kUnix,  // on its socket alone
    kTcp,   // and on port() of 127.0.0.1
    kTls,   // and there by TLS; `more` says with what certificates
  };
  struct Options {
    Listens listens = Listens::kUnix;
    std::vector<std::string> more;  // of its command line: {"--maxmemory", "10mb"}
  };

  RedisServer() : RedisServer(Options{}) {}
  explicit RedisServer(Options options);  // Starts it.
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer();

  // Comes back when it answers. It has ended before.
  void Start();
  // SIGKILL, and comes back when it is gone. Does nothing when it is.
  void Kill();
  // SIGSTOP and SIGCONT. While it stands still it may be killed.
  void Pause();
  void Resume();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& unix_socket() const { return unix_socket_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }

  // By a connection of its own to the Unix socket.
  RedisReply Ask(std::initializer_list<std::string_view> words);

 private:
  void Spawn();
  bool AnswersSoon();
  [[nodiscard]] std::vector<std::string> CommandLine() const;

  const Options options_;
  std::string folder_;
  std::string unix_socket_;
  std::string log_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;  // -1: it does not run
};

}  // namespace sluice::net::testing
