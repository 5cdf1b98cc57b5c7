#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/holder/loop.hpp"
#include "keeper/protocol/protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace berth::keeper {

// One client of a keeper: frames in, frames out, and the outputs that it is attached to. A client
// that reads slowly does not slow down others: its outputs remain in their files until it has read
// what it was sent.
class Session {
 public:
  // What a session needs from the keeper.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void handle(Session& from, const Frame& frame) = 0;
    virtual bool is_known(const std::string& exec_id) const = 0;
    // The state of an attached output: whether more may come, and otherwise its exit record.
    virtual bool is_live(const std::string& exec_id) const = 0;
    virtual void answer_end(Address to, const std::string& exec_id) = 0;
  };

  Session(std::uint64_t id, Fd socket, Host& host, std::span<char> scratch)
      : id_(id), socket_(std::move(socket)), host_(host), scratch_(scratch) {}

  void add_to(PollSet& turn);
  // Sends what the attached outputs have, as far as the client accepts it.
  void pump();
  void post(std::string_view frame);
  // Sends an open file as well, of which the client gets a copy.
  void post(std::string_view frame, Fd descriptor);
  Result<> attach(std::uint64_t request, const Attach& what);
  void greet() { greeted_ = true; }
  void close() { closed_ = true; }

  std::uint64_t id() const { return id_; }
  bool is_greeted() const { return greeted_; }
  bool is_closed() const { return closed_; }

 private:
  struct Attachment {
    std::uint64_t request = 0;
    std::string exec_id = {};
    Fd file = {};
    std::uint64_t offset = 0;
    bool over = false;
  };

  void receive();
  void handle_frames();
  void flush();
  std::size_t pump_one(Attachment& attachment);

  std::uint64_t id_;
  Fd socket_;
  Host& host_;
  std::span<char> scratch_;
  FrameReader in_;
  std::string out_;
  struct Enclosure {
    std::size_t at = 0;  // offset in out_ of its frame's first byte
    Fd descriptor = {};
  };
  std::deque<Enclosure> enclosures_;
  std::vector<Attachment> attachments_;
  bool greeted_ = false;
  bool hungry_ = false;  // has used up its share of this turn, and there is more
  bool closed_ = false;
};

}  // namespace berth::keeper
