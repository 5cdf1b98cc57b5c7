#include "integration/keeper_fixture.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

// What happens to the bytes that a command writes.
namespace berth::keeper_test {
namespace {

using keeper::Ended;
using keeper::Exec;
using keeper::Outcome;
using keeper::Record;
using keeper::Stream;

class KeeperOutput : public KeeperTest {};

TEST_F(KeeperOutput, KeepsItsStreamsApartInTheOrderOfTheirArrival) {
  Exec exec = shell("echo one; read x; echo two >&2; read x; echo three");
  exec.stdin_kind = keeper::Stdin::pipe;
  ASSERT_TRUE(client().exec(exec));
  for (const std::size_t seen : {1U, 2U}) {
    ASSERT_TRUE(eventually([&] { return records_of(exec.exec_id).size() == seen; }));
    ASSERT_TRUE(client().write(exec.exec_id, "\n"));
  }
  ASSERT_TRUE(client().wait(exec.exec_id));
  const std::vector<Record> records = records_of(exec.exec_id);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].bytes, "one\n");
  EXPECT_EQ(records[1].bytes, "two\n");
  EXPECT_EQ(records[2].bytes, "three\n");
  EXPECT_EQ(records[0].stream, Stream::out);
  EXPECT_EQ(records[1].stream, Stream::err);
  EXPECT_EQ(records[2].stream, Stream::out);
  EXPECT_LE(records[0].time_us, records[1].time_us);
  EXPECT_EQ(records[0].next_offset, records[1].offset);
}

TEST_F(KeeperOutput, IsKeptByteForByte) {
  const Exec exec = shell(R"(printf '\000\001\377\200no utf-8\000'; printf '\000' >&2)");
  run(exec);
  EXPECT_EQ(output_of(exec.exec_id).out, std::string("\0\1\377\200no utf-8\0", 13));
  EXPECT_EQ(output_of(exec.exec_id).err, std::string("\0", 1));
}

TEST_F(KeeperOutput, MayBeALineOfAHundredMegabytes) {
  const Exec exec = shell("head -c 100000000 /dev/zero | tr '\\0' x");
  const Ended ended = run(exec);
  EXPECT_EQ(ended.stdout_bytes, 100'000'000U);
  std::size_t total = 0;
  for (const Record& record : records_of(exec.exec_id)) total += record.bytes.size();
  EXPECT_EQ(total, 100'000'000U);
}

TEST_F(KeeperOutput, BeyondTheLimitIsCutAndCountedWhileTheCommandGoesOn) {
  Exec exec = shell("head -c 1000000000 /dev/zero; echo done >&2");
  exec.output_bytes_max = 1000;
  const Ended ended = run(exec);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.stdout_bytes, 1'000'000'000U);
  EXPECT_EQ(ended.stderr_bytes, 5U);
  EXPECT_EQ(ended.bytes_over_limit, 1'000'000'005U - 1000U);
  const Streams kept = output_of(exec.exec_id);
  EXPECT_EQ(kept.out.size() + kept.err.size(), 1000U);
  EXPECT_NE(kept.notes.find("output limit reached after 1000 bytes"), std::string::npos);
  EXPECT_EQ(ended.output_end,
            std::filesystem::file_size(folder() + "/" + keeper::output_file(exec.exec_id)));
}

TEST_F(KeeperOutput, IsStreamedToWhoIsAttachedWhileItComes) {
  Exec exec = shell("echo one; read x; echo two");
  exec.stdin_kind = keeper::Stdin::pipe;
  ASSERT_TRUE(client().exec(exec));
  keeper::KeeperClient watcher = connect();
  std::string seen;
  const auto ended = watcher.attach(exec.exec_id, 0, [&](std::uint64_t offset, std::string_view b) {
    EXPECT_EQ(offset, seen.size());
    seen += b;
    if (seen.find("one\n") != std::string::npos && seen.find("two") == std::string::npos) {
      EXPECT_TRUE(client().write(exec.exec_id, "\n"));
    }
    return true;
  });
  ASSERT_TRUE(ended && *ended);
  EXPECT_EQ((*ended)->code, 0);
  EXPECT_EQ(seen.size(), (*ended)->output_end);
  EXPECT_NE(seen.find("two\n"), std::string::npos);
}

TEST_F(KeeperOutput, IsReadFromAnOffsetByANewClientWithNothingLost) {
  const Exec exec = shell("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done");
  std::string seen;
  {
    keeper::KeeperClient first = connect();
    ASSERT_TRUE(first.exec(exec));
    const auto cut = first.attach(exec.exec_id, 0, [&](std::uint64_t, std::string_view bytes) {
      seen += bytes;
      return false;  // and the client has ended, as if it had been killed
    });
    ASSERT_TRUE(cut);
  }
  keeper::KeeperClient second = connect();
  const auto ended =
      second.attach(exec.exec_id, seen.size(), [&](std::uint64_t offset, std::string_view bytes) {
        EXPECT_EQ(offset, seen.size());
        seen += bytes;
        return true;
      });
  ASSERT_TRUE(ended && *ended);
  std::string all;
  for (const Record& record : records_of(exec.exec_id)) {
    const auto header = keeper::encode_header(
        {static_cast<std::uint32_t>(record.bytes.size()), record.stream, record.time_us});
    all.append(header.data(), header.size()).append(record.bytes);
  }
  EXPECT_EQ(seen, all);
}

TEST_F(KeeperOutput, OfACommandThatEndedLongAgoIsStillStreamed) {
  const Exec exec = shell("echo kept");
  run(exec);
  std::string seen;
  const auto ended = client().attach(exec.exec_id, 0, [&](std::uint64_t, std::string_view bytes) {
    seen += bytes;
    return true;
  });
  ASSERT_TRUE(ended && *ended);
  EXPECT_TRUE(seen.ends_with("kept\n"));
}

TEST_F(KeeperOutput, AClientThatDoesNotReadHoldsUpNobody) {
  const Exec exec = shell("head -c 50000000 /dev/zero");
  keeper::KeeperClient lazy = connect();
  ASSERT_TRUE(lazy.exec(exec));
  lazy.send(keeper::Attach{.exec_id = exec.exec_id});
  ASSERT_TRUE(lazy.stats(""));  // sends what was queued, and then no longer reads
  const auto ended = client().wait(exec.exec_id, 60s);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->stdout_bytes, 50'000'000U);
}

TEST_F(KeeperOutput, OfSeveralCommandsAtOnceDoesNotMix) {
  std::vector<Exec> execs;
  for (int i = 0; i < 20; ++i) {
    execs.push_back(
        shell("j=0; while [ $j -lt 100 ]; do echo " + std::to_string(i) + "; j=$((j+1)); done"));
    client().send(execs.back());
  }
  for (std::size_t i = 0; i < execs.size(); ++i) {
    const auto ended = client().wait(execs[i].exec_id, 60s);
    ASSERT_TRUE(ended);
    std::string expected;
    for (int j = 0; j < 100; ++j) expected += std::to_string(i) + "\n";
    EXPECT_EQ(output_of(execs[i].exec_id).out, expected);
  }
}

TEST_F(KeeperOutput, ThatTheDiskRefusesIsCountedWhileTheCommandGoesOn) {
  Exec exec =
      shell("read x; head -c 3000000 /dev/zero; echo ready >&2; read x; echo after; exit 4");
  exec.stdin_kind = keeper::Stdin::pipe;
  ASSERT_TRUE(client().exec(exec));
  const rlimit full{.rlim_cur = 1'000'000, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::prlimit(keeper_pid(), RLIMIT_FSIZE, &full, nullptr), 0);
  ASSERT_TRUE(client().write(exec.exec_id, "\n"));
  // The command has reached its second read, so the keeper has taken everything that it wrote
  // before.
  ASSERT_TRUE(eventually([&] {
    const auto status = client().stats(exec.exec_id);
    return status && status->processes == 1 && output_of(exec.exec_id).out.size() > 100'000;
  }));
  const rlimit room{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::prlimit(keeper_pid(), RLIMIT_FSIZE, &room, nullptr), 0);
  ASSERT_TRUE(client().write(exec.exec_id, "\n"));
  const auto ended = client().wait(exec.exec_id);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 4);
  EXPECT_EQ(ended->stdout_bytes, 3'000'006U);
  EXPECT_GT(ended->bytes_lost, 1'000'000U);
  const Streams kept = output_of(exec.exec_id);
  EXPECT_EQ(kept.out.size() + kept.err.size(), 3'000'012U - ended->bytes_lost);
  EXPECT_NE(kept.notes.find("File too large"), std::string::npos) << kept.notes;
  EXPECT_TRUE(kept.out.ends_with("after\n"));
}

// A 256 kB file system, which only root can mount.
class SmallDisk {
 public:
  explicit SmallDisk(std::string at) : at_(std::move(at)) {
    std::filesystem::create_directory(at_);
    mounted_ = ::mount("tmpfs", at_.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return mounted_; }

 private:
  std::string at_;
  bool mounted_ = false;
};

// Until the file system is full.
void fill(const std::string& path) {
  const Fd file{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
  const std::string page(4096, 'x');
  while (::write(file.get(), page.data(), page.size()) > 0) {
  }
}

class KeeperOnASmallDisk : public KeeperTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system takes root";
    KeeperTest::SetUp();
  }
};

TEST_F(KeeperOnASmallDisk, AFullDiskLosesOutputButNotHowTheCommandEnded) {
  const SmallDisk disk{root() + "/disk"};
  if (!disk.is_mounted()) GTEST_SKIP() << "mounting is not allowed here";
  auto spawned = keeper::spawn_keeper({.program = BERTH_KEEPER, .folder = root() + "/disk/k"});
  ASSERT_TRUE(spawned);
  keeper::KeeperClient small{std::move(spawned->control)};
  const Exec exec = shell("head -c 5000000 /dev/zero; exit 5");
  const auto ended = small.run(exec);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->code, 5);
  EXPECT_EQ(ended->stdout_bytes, 5'000'000U);
  EXPECT_GT(ended->bytes_lost, 4'000'000U);
  const auto recorded = keeper::read_exit(root() + "/disk/k", exec.exec_id);
  ASSERT_TRUE(recorded) << recorded.error().message;
  EXPECT_EQ(recorded->bytes_lost, ended->bytes_lost);
  EXPECT_TRUE(small.stop(0ms));
}

// One end may fit into the space that the disk gave for the start; many do not.
TEST_F(KeeperOnASmallDisk, AFullDiskHidesTheEndOfNoneOfMany) {
  const SmallDisk disk{root() + "/disk"};
  if (!disk.is_mounted()) GTEST_SKIP() << "mounting is not allowed here";
  auto spawned = keeper::spawn_keeper({.program = BERTH_KEEPER, .folder = root() + "/disk/k"});
  ASSERT_TRUE(spawned);
  keeper::KeeperClient small{std::move(spawned->control)};
  std::vector<Exec> waiting;
  for (int i = 0; i < 16; ++i) {
    waiting.push_back(shell("read line; exit 3"));
    waiting.back().stdin_kind = keeper::Stdin::pipe;
    ASSERT_TRUE(small.exec(waiting.back()));
  }
  fill(root() + "/disk/full");
  for (const Exec& exec : waiting) {
    ASSERT_TRUE(small.close_stdin(exec.exec_id));
    ASSERT_TRUE(small.wait(exec.exec_id));
    const auto recorded = keeper::read_exit(root() + "/disk/k", exec.exec_id);
    ASSERT_TRUE(recorded) << recorded.error().message;
    EXPECT_EQ(recorded->code, 3);
  }
  EXPECT_TRUE(small.stop(0ms));
}

}  // namespace
}  // namespace berth::keeper_test
