#include "sluice/net/testing/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>  // NOLINT: kill
#include <stdlib.h>  // NOLINT: mkdtemp
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "sluice/net/testing/raw_client.h"

namespace sluice::net::testing {
namespace {

constexpr std::chrono::seconds kPatience(20);

// -1 if nobody listens there.
int ConnectTo(const std::string& unix_socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_LT(unix_socket.size(), sizeof(address.sun_path)) << unix_socket;
  std::strncpy(address.sun_path, unix_socket.c_str(), sizeof(address.sun_path) - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return socket;
  }
  ::close(socket);
  return -1;
}

void SetTimeout(int socket) {
  const timeval limit{.tv_sec = kPatience.count(), .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

std::string Contents(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// In the child: only what is safe after a fork.
[[noreturn]] void BecomeServer(const char* log, char* const* arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);  // the test's sockets are not the server's
  ::execvp(arguments[0], arguments);
  constexpr std::string_view kFailed = "redis-server cannot be started; is it installed?\n";
  static_cast<void>(::write(STDERR_FILENO, kFailed.data(), kFailed.size()) + 1);
  ::_exit(127);
}

}  // namespace

RawRedis::RawRedis(const std::string& unix_socket) : socket_(ConnectTo(unix_socket)) {
  if (socket_ < 0) ADD_FAILURE() << "nobody listens at " << unix_socket;
  SetTimeout(socket_);
}

RawRedis::RawRedis(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  SetTimeout(socket_);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ADD_FAILURE() << "nobody listens at port " << port;
  }
}

RawRedis::~RawRedis() {
  if (socket_ >= 0) ::close(socket_);
}

void RawRedis::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      ADD_FAILURE() << "redis-server takes no command: " << std::strerror(errno);
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

RedisReply RawRedis::Read() {
  RedisReply reply;
  while (reader_.Next(&reply) == RedisReplyReader::Step::kMore) {
    std::array<char, 16384> bytes;
    const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (got <= 0) {
      ADD_FAILURE() << "redis-server does not answer";
      return reply;
    }
    reader_.Feed({bytes.data(), static_cast<std::size_t>(got)});
  }
  EXPECT_EQ(reader_.why(), "");
  return reply;
}

RedisReply RawRedis::Ask(std::initializer_list<std::string_view> words) {
  std::string bytes;
  AppendRedisCommand({words.begin(), words.size()}, &bytes);
  Send(bytes);
  return Read();
}

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  std::string folder = ::testing::TempDir() + "sluice_redis_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) ADD_FAILURE() << "cannot make " << folder;
  folder_ = folder + "/";
  unix_socket_ = folder_ + "redis.sock";
  log_ = folder_ + "log";
  Start();
}

RedisServer::~RedisServer() {
  Kill();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<std::string> RedisServer::CommandLine() const {
  const std::string port = std::to_string(port_);
  const bool tls = options_.listens == Listens::kTls;
  std::vector<std::string> line = {"redis-server",
                                   "--bind",
                                   "127.0.0.1",
                                   "--port",
                                   tls ? "0" : port,
                                   "--unixsocket",
                                   unix_socket_,
                                   "--dir",
                                   folder_,
                                   "--save",
                                   "",
                                   "--appendonly",
                                   "no",
                                   "--loglevel",
                                   "warning",
                                   "--daemonize",
                                   "no"};
  if (tls) line.insert(line.end(), {"--tls-port", port});
  line.insert(line.end(), options_.more.begin(), options_.more.end());
  return line;
}

void RedisServer::Start() {
  ASSERT_EQ(pid_, -1) << "it runs";
  const bool needs_port = options_.listens != Listens::kUnix;
  const bool again = port_ != 0;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    // A port that is free now may be somebody's a moment later: then another, or, after a restart,
    // the same one again.
    if (needs_port && !again) port_ = RawListener().port();
    Spawn();
    if (AnswersSoon()) return;
    Kill();
  } while (needs_port && std::chrono::steady_clock::now() < end &&
           Contents(log_).find("in use") != std::string::npos);
  ADD_FAILURE() << "redis-server does not run: " << Contents(log_);
}

void RedisServer::Spawn() {
  std::vector<std::string> line = CommandLine();
  std::vector<char*> arguments;
  arguments.reserve(line.size() + 1);
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::filesystem::remove(log_);
  pid_ = ::fork();
  if (pid_ == 0) BecomeServer(log_.c_str(), arguments.data());
  ASSERT_GT(pid_, 0) << std::strerror(errno);
}

// False: it has ended, or says nothing.
bool RedisServer::AnswersSoon() {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) {
      pid_ = -1;
      return false;
    }
    if (const int socket = ConnectTo(unix_socket_); socket >= 0) {
      ::close(socket);
      return Ask({"PING"}).kind() != RedisKind::kNil;  // an error is an answer, too
    }
    ::poll(nullptr, 0, 2);
  }
  return false;
}

void RedisServer::Kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void RedisServer::Pause() {
  ASSERT_GT(pid_, 0);
  ::kill(pid_, SIGSTOP);
}

void RedisServer::Resume() {
  ASSERT_GT(pid_, 0);
  ::kill(pid_, SIGCONT);
}

RedisReply RedisServer::Ask(std::initializer_list<std::string_view> words) {
  return RawRedis(unix_socket_).Ask(words);
}

}  // namespace sluice::net::testing
