#include "sluice/net/testing/raw_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace sluice::net::testing {
namespace {

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace

bool RawResponse::Has(std::string_view name) const {
  return Lower(head).find("\r\n" + Lower(name) + ":") != std::string::npos;
}

std::string RawResponse::Field(std::string_view name) const {
  const std::size_t at = Lower(head).find("\r\n" + Lower(name) + ":");
  if (at == std::string::npos) return {};
  const std::size_t begin = head.find_first_not_of(' ', at + 2 + name.size() + 1);
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

RawClient::RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  SetTimeout();
  const sockaddr_in address = Loopback(port);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ADD_FAILURE() << "cannot connect to port " << port;
  }
}

void RawClient::SetTimeout() const {
  const timeval limit{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void RawClient::Close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void RawClient::Reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  Close();
}

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawClient::Silent(std::chrono::milliseconds time) const {
  pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count())) == 0;
}

bool RawClient::Drip(std::string_view piece) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (Silent(std::chrono::milliseconds(5))) {
    if (!Send(piece)) return true;
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

ssize_t RawClient::Receive(std::span<char> room) {
  return ::recv(socket_, room.data(), room.size(), 0);
}

bool RawClient::ReadSome() {
  std::array<char, 16384> bytes;
  const ssize_t got = Receive(bytes);
  if (got < 0) {
    failed_ = true;
    if (errno == EAGAIN) ADD_FAILURE() << "nothing came for 20 s; before: " << unread_;
  }
  if (got > 0) unread_.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0;
}

bool RawClient::FillTo(std::size_t size) {
  while (unread_.size() < size) {
    if (!ReadSome()) return false;
  }
  return true;
}

std::string RawClient::ReadUntil(std::string_view mark) {
  std::size_t end = std::string::npos;
  do {
    if (!mark.empty()) end = unread_.find(mark);
  } while (end == std::string::npos && ReadSome());
  const std::size_t size = end == std::string::npos ? unread_.size() : end + mark.size();
  std::string text = unread_.substr(0, size);
  unread_.erase(0, size);
  return text;
}

std::string RawClient::ReadExactly(std::size_t size) {
  FillTo(size);
  std::string text = unread_.substr(0, size);
  unread_.erase(0, text.size());
  return text;
}

bool RawClient::Ended() { return ReadToEnd().empty() && !failed_; }

void RawClient::ReadChunks(RawResponse* response) {
  while (true) {
    const std::string line = ReadUntil("\r\n");
    if (!line.ends_with("\r\n")) return;
    const std::size_t size = std::stoul(line, nullptr, 16);
    const std::string chunk = ReadExactly(size + 2);
    if (chunk.size() < size + 2) {
      response->body.append(chunk);
      return;
    }
    response->body.append(chunk, 0, size);
    if (size == 0) {
      response->complete = true;
      return;
    }
  }
}

RawResponse RawClient::ReadResponse(bool to_head) {
  RawResponse response;
  response.head = ReadUntil("\r\n\r\n");
  if (!response.head.ends_with("\r\n\r\n")) return response;
  response.status = std::stoi(response.head.substr(response.head.find(' ') + 1));
  if (to_head || response.status < 200 || response.status == 204 || response.status == 304) {
    response.complete = true;
  } else if (Lower(response.Field("Transfer-Encoding")) == "chunked") {
    ReadChunks(&response);
  } else if (response.Has("Content-Length")) {
    const std::size_t size = std::stoul(response.Field("Content-Length"));
    response.body = ReadExactly(size);
    response.complete = response.body.size() == size;
  } else {
    response.body = ReadToEnd();
    response.complete = !failed_;
  }
  return response;
}

RawResponse RawClient::Ask(std::string_view request) {
  Send(request);
  return ReadResponse();
}

RawListener::RawListener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(socket_, 16) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    ADD_FAILURE() << "cannot listen";
  }
  port_ = ntohs(address.sin_port);
}

int RawListener::Accept() const {
  pollfd come{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&come, 1, /*milliseconds=*/20'000) == 0) {
    ADD_FAILURE() << "nobody has connected";
    return -1;
  }
  return ::accept(socket_, nullptr, nullptr);
}

void RawListener::Close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

}  // namespace sluice::net::testing
