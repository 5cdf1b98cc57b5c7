#pragma once

#include "base/async/task_group.hpp"
#include "base/owned.hpp"
#include "egress/name_answers.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>

#include <list>

namespace berth::egress {

// Responds on a UDP socket that was bound in a worker's network namespace. Handles one datagram at
// a time and a limited number per second: the kernel drops what the worker sends beyond that.
class NameServer {
 public:
  // `answers` must outlive it.
  NameServer(asio::io_context& loop, NameAnswers& answers)
      : loop_(loop), answers_(answers), tasks_(loop.get_executor()) {}

  // Fails io_failed if the descriptor is not a UDP socket.
  Result<> listen(Fd socket);
  // Closes the sockets and returns when nothing is left.
  Task<> stop();

 private:
  using Socket = asio::ip::udp::socket;
  Task<> serve(Socket& socket);

  asio::io_context& loop_;
  NameAnswers& answers_;
  std::list<Socket> sockets_;
  TaskGroup tasks_;
};

}  // namespace berth::egress
