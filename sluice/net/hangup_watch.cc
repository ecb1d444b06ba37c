#include "sluice/net/hangup_watch.h"

#include <sys/epoll.h>

#include <cstdlib>

namespace sluice::net {

HangupWatch::HangupWatch(asio::io_context& context)
    : epoll_(context.get_executor(), ::epoll_create1(EPOLL_CLOEXEC)) {}

void HangupWatch::Watch(int descriptor, Watcher& watcher) {
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLONESHOT;
  event.data.ptr = &watcher;
  if (::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, descriptor, &event) != 0) return;
  Wait();
}

void HangupWatch::Unwatch(int descriptor) {
  ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void HangupWatch::Stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  epoll_.cancel(ignored);
}

void HangupWatch::Wait() {
  if (waiting_ || stopped_) return;
  waiting_ = true;
  epoll_.async_wait(asio::posix::descriptor_base::wait_read,
                    [this](const boost::system::error_code& error) {
                      waiting_ = false;
                      if (!error) Tell();
                    });
}

void HangupWatch::Tell() {
  // One at a time: a watcher may take off, or destroy, the next in line.
  epoll_event event{};
  while (::epoll_wait(epoll_.native_handle(), &event, 1, 0) == 1) {
    static_cast<Watcher*>(event.data.ptr)->OnHangup();
  }
  Wait();
}

}  // namespace sluice::net
