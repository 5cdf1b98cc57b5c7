#include "keeper/protocol/protocol.hpp"

#include "keeper/protocol/client.hpp"
#include "keeper/protocol/descriptors.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>

namespace berth::keeper {
namespace {

Exec some_exec() {
  return {.exec_id = "a-1",
          .argv = {"sh", "-c", "true"},
          .environment = {"A=1"},
          .cwd = "/tmp",
          .stdin_kind = Stdin::bytes,
          .stdin_bytes = std::string("\0\xff", 2),
          .deadline_ms = 7,
          .leftovers = Leftovers::linger};
}

TEST(Frames, ComeBackAsTheyWereHoweverTheyAreCut) {
  std::string bytes;
  append_frame(bytes, 1, some_exec());
  append_frame(bytes, 2, List{});
  append_frame(bytes, 3, Wait{.exec_id = "a-1"});
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader;
    std::vector<std::uint64_t> seen;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(std::string_view{bytes}.substr(at, piece));
      while (true) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame);
        if (!*frame) break;
        seen.push_back((*frame)->request);
        if ((*frame)->verb != Verb::exec) continue;
        const Result<Exec> exec = decode<Exec>(**frame);
        ASSERT_TRUE(exec);
        EXPECT_EQ(fingerprint(*exec), fingerprint(some_exec()));
      }
    }
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3})) << "in pieces of " << piece;
  }
}

TEST(Frames, ThatAreTooLongOrOfNoVerbAreRefusedBeforeTheyAreWhole) {
  const auto refused = [](std::uint32_t length, std::uint8_t verb) {
    std::string bytes;
    WireWriter writer{bytes};
    writer.put(length);
    writer.put(verb);
    FrameReader reader;
    reader.feed(bytes);
    const auto frame = reader.next();
    return !frame && frame.error().code == Errc::keeper_protocol;
  };
  EXPECT_TRUE(refused(limits::frame_bytes + 1, static_cast<std::uint8_t>(Verb::wait)));
  EXPECT_FALSE(refused(limits::frame_bytes + 1, static_cast<std::uint8_t>(Verb::exec)));
  EXPECT_TRUE(refused(limits::exec_frame_bytes + 1, static_cast<std::uint8_t>(Verb::exec)));
  EXPECT_TRUE(refused(3, static_cast<std::uint8_t>(Verb::wait)));
  EXPECT_TRUE(refused(20, static_cast<std::uint8_t>(Verb::count_)));
  EXPECT_TRUE(refused(20, 0));
}

TEST(Messages, CutAnywhereOrWithABytesTooManyAreRefused) {
  std::string bytes;
  WireWriter{bytes}.put(some_exec());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Frame cut{.verb = Verb::exec, .message = std::string_view{bytes}.substr(0, size)};
    EXPECT_FALSE(decode<Exec>(cut)) << "after " << size << " bytes";
  }
  bytes += '\0';
  EXPECT_FALSE(decode<Exec>(Frame{.verb = Verb::exec, .message = bytes}));
}

TEST(Messages, TellWhatIsAbsentFromNothing) {
  using Number = std::optional<std::uint64_t>;
  for (const Number read : {Number{}, Number{0}, Number{7}}) {
    std::string bytes;
    WireWriter{bytes}.put(Usage{.read_bytes = read, .oom_kills = 3});
    const Result<Usage> usage = decode<Usage>(Frame{.verb = Verb::usage, .message = bytes});
    ASSERT_TRUE(usage);
    EXPECT_EQ(usage->read_bytes, read);
    EXPECT_EQ(usage->written_bytes, std::nullopt);
    EXPECT_EQ(usage->oom_kills, 3U);
  }
}

TEST(Messages, ThatClaimMoreItemsThanTheyHaveAreRefusedWithoutRoomForThem) {
  std::string bytes;
  WireWriter writer{bytes};
  writer.put(std::string_view{"id"});
  writer.put(std::uint32_t{0xffffffff});  // arguments
  EXPECT_FALSE(decode<Exec>(Frame{.verb = Verb::exec, .message = bytes}));
}

TEST(Fingerprint, DiffersWhenAnyFieldDoes) {
  Exec other = some_exec();
  other.environment = {"A=2"};
  EXPECT_NE(fingerprint(other), fingerprint(some_exec()));
  other = some_exec();
  other.argv = {"sh", "-ct", "rue"};  // the same bytes, split elsewhere
  EXPECT_NE(fingerprint(other), fingerprint(some_exec()));
}

TEST(ExecId, IsAPartOfAFileNameThatStaysOne) {
  for (const char* good : {"a", "A-1_b.c", "0190a5e2-7b7e-7cc1-8d05-0123456789ab"}) {
    EXPECT_TRUE(is_exec_id(good)) << good;
  }
  for (const char* bad : {"", ".", "..", ".a", "a/b", "a b", "a\n", "ä"}) {
    EXPECT_FALSE(is_exec_id(bad)) << bad;
  }
  EXPECT_FALSE(is_exec_id(std::string(65, 'a')));
}

// While it lives, this process cannot open more files.
class FullTable {
 public:
  FullTable() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const Fd lowest_free{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)};
    rlimit full = before_;
    full.rlim_cur = static_cast<rlim_t>(lowest_free.get());
    ::setrlimit(RLIMIT_NOFILE, &full);
  }
  FullTable(const FullTable&) = delete;
  FullTable& operator=(const FullTable&) = delete;
  ~FullTable() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(Descriptors, ThatDoNotFitAnyMoreAreSaidToBeTooMany) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  KeeperClient client{Fd{pair[0]}};
  const Fd theirs{pair[1]};
  std::string answer;
  append_frame(answer, 0, Welcome{});
  append_frame(answer, 1, Descriptor{});
  const int passed = theirs.get();
  ASSERT_EQ(send_with(theirs.get(), answer, {&passed, 1}, 0), std::ssize(answer));
  const FullTable full;
  const Result<Fd> taken = client.listener(80);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::io_failed);
  EXPECT_NE(taken.error().message.find("Too many open files"), std::string::npos)
      << taken.error().message;
  EXPECT_NE(taken.error().remedy.find("LimitNOFILE"), std::string::npos) << taken.error().remedy;
}

TEST(Refusals, KeepTheirCodeOnTheWire) {
  const Error error{Errc::command_not_found, "no ls", "install it"};
  EXPECT_EQ(as_error(as_refused(error)), error);
}

}  // namespace
}  // namespace berth::keeper
