#include "egress_fixture.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

// Tunnels: bytes in both directions, every way to end, and the effect of a new policy.
namespace berth::egress_test {
namespace {

LabPlan tunnel_allowing(const Upstream& upstream) {
  return {.allow = {"127.0.0.1:" + std::to_string(upstream.port()),
                    "site.test:" + std::to_string(upstream.port())}};
}

void echo(Wire& wire) {
  while (true) {
    const std::string line = wire.read_until("\n");
    if (!line.ends_with('\n') || !wire.send(line)) return;
  }
}

// Sockets, and what an event loop waits on. Files are not counted: the sanitizer's runtime briefly
// opens one when a thread starts.
std::ptrdiff_t open_channels() {
  const std::filesystem::directory_iterator all{"/proc/self/fd"};
  return std::ranges::count_if(all, [](const auto& descriptor) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(descriptor.path(), gone).string();
    return !gone && !what.starts_with('/');
  });
}

// A megabyte that differs for each number, and whose bytes depend on their position.
std::string megabyte(std::uint32_t number) {
  static const std::string noise = [] {
    std::string bytes(1UL << 20U, '\0');
    std::uint32_t state = 1;
    for (char& c : bytes) {
      state = state * 1664525U + 1013904223U;
      c = static_cast<char>(state >> 24U);
    }
    return bytes;
  }();
  return noise.substr(number) + noise.substr(0, number);
}

TEST(EgressTunnel, MovesAHundredMegabytesEachWayExactly) {
  constexpr std::uint32_t count = 100;
  const Upstream site{[](Wire& wire) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string got = wire.read_bytes(1UL << 20U);
      if (!wire.send(got)) return;
    }
    wire.read_all();
  }};
  Lab lab{tunnel_allowing(site)};
  Wire wire = lab.tunnel(site.authority("127.0.0.1"));
  std::jthread sender{[&] {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!wire.send(megabyte(i))) return;
    }
    wire.end_of_sending();
  }};
  for (std::uint32_t i = 0; i < count; ++i) {
    ASSERT_TRUE(wire.read_bytes(1UL << 20U) == megabyte(i)) << "megabyte " << i;
  }
  EXPECT_EQ(wire.read_all(), "");
  const egress::LogEntry entry = lab.entry_after(1);
  EXPECT_EQ(entry.bytes_up, count << 20U);
  EXPECT_EQ(entry.bytes_down, count << 20U);
  EXPECT_EQ(entry.method, "CONNECT");
  EXPECT_EQ(entry.decision, egress::Outcome::allowed);
}

TEST(EgressTunnel, AnswersAfterTheClientHasEndedItsSide) {
  const Upstream site{[](Wire& wire) {
    const std::string all = wire.read_all();
    wire.send("got " + all);
  }};
  Lab lab{tunnel_allowing(site)};
  Wire wire = lab.tunnel(site.authority("127.0.0.1"));
  wire.send("everything");
  wire.end_of_sending();
  EXPECT_EQ(wire.read_all(), "got everything");
}

TEST(EgressTunnel, TakesBytesAfterTheUpstreamHasEndedItsSide) {
  std::promise<std::string> got;
  const Upstream site{[&](Wire& wire) {
    wire.send("bye");
    wire.end_of_sending();
    got.set_value(wire.read_all());
  }};
  Lab lab{tunnel_allowing(site)};
  Wire wire = lab.tunnel(site.authority("127.0.0.1"));
  EXPECT_EQ(wire.read_all(), "bye");
  wire.send("last words");
  wire.end_of_sending();
  EXPECT_EQ(got.get_future().get(), "last words");
}

TEST(EgressTunnel, EarlyBytesBelongToIt) {
  const Upstream site{echo};
  Lab lab{tunnel_allowing(site)};
  Wire wire = lab.client();
  wire.send(connect(site.authority("127.0.0.1")) + "early\n");
  EXPECT_EQ(wire.read_answer().status, 200);
  EXPECT_EQ(wire.read_until("\n"), "early\n");
}

TEST(EgressTunnel, EndsWithItsClientAndWithItsUpstream) {
  std::promise<void> upstream_saw_end;
  const Upstream site{[&](Wire& wire) {
    const std::string line = wire.read_until("\n");
    if (line == "leave\n") return;
    wire.send("x\n");
    wire.read_all();
    upstream_saw_end.set_value();
  }};
  Lab lab{tunnel_allowing(site)};
  Wire left = lab.tunnel(site.authority("127.0.0.1"));
  left.send("leave\n");
  EXPECT_EQ(left.read_all(), "");
  left.close();
  Wire gone = lab.tunnel(site.authority("127.0.0.1"));
  gone.send("stay\n");
  EXPECT_EQ(gone.read_until("\n"), "x\n");
  gone.reset();
  upstream_saw_end.get_future().wait();
  EXPECT_TRUE(lab.until([](const auto& now) { return now.connections == 0; }));
}

TEST(EgressTunnel, IsCutWhenNoByteMoves) {
  const Upstream site{echo};
  LabPlan setup = tunnel_allowing(site);
  setup.limits.idle_timeout = 1500ms;
  Lab lab{std::move(setup)};
  Wire wire = lab.tunnel(site.authority("127.0.0.1"));
  wire.send("a\n");
  EXPECT_EQ(wire.read_until("\n"), "a\n");
  EXPECT_EQ(wire.read_all(), "");
  EXPECT_EQ(lab.entry_after(1).reason, "no byte moved for too long");
}

TEST(EgressTunnel, IsCutByAPolicyThatNoLongerAllowsIt) {
  const Upstream site{echo};
  const Upstream other{echo};
  LabPlan setup = tunnel_allowing(site);
  setup.allow.push_back(other.authority("127.0.0.1"));
  Lab lab{std::move(setup)};
  lab.resolver.answers["site.test"] = {{"127.0.0.1"}};
  Wire by_name = lab.tunnel(site.authority("site.test"));
  Wire by_address = lab.tunnel(site.authority("127.0.0.1"));
  Wire kept = lab.tunnel(other.authority("127.0.0.1"));
  lab.set_rules({site.authority("127.0.0.1"), other.authority("127.0.0.1")});
  EXPECT_EQ(by_name.read_all(), "");
  const egress::LogEntry entry = lab.entry_after(1);
  EXPECT_EQ(entry.decision, egress::Outcome::cut);
  EXPECT_EQ(entry.host, "site.test");
  EXPECT_EQ(lab.ask(connect(site.authority("site.test"))).status, 403);
  by_address.send("still\n");
  EXPECT_EQ(by_address.read_until("\n"), "still\n");
  lab.set_rules({other.authority("127.0.0.1")}, {"127.0.0.1/32:" + std::to_string(site.port())});
  EXPECT_EQ(by_address.read_all(), "");
  EXPECT_TRUE(lab.entry_after(3).rule.starts_with("egress.deny[0]"));
  kept.send("still\n");
  EXPECT_EQ(kept.read_until("\n"), "still\n");
}

TEST(EgressTunnel, KeepsToItsRate) {
  const Upstream site{[](Wire& wire) {
    wire.send(std::string(300'000, 'x'));
    wire.end_of_sending();
    wire.read_all();
  }};
  LabPlan setup = tunnel_allowing(site);
  setup.limits.bytes_per_second = 200'000;
  Lab lab{std::move(setup)};
  const auto started = std::chrono::steady_clock::now();
  Wire wire = lab.tunnel(site.authority("127.0.0.1"));
  EXPECT_EQ(wire.read_all().size(), 300'000U);
  wire.close();
  lab.entry_after(1);
  // A burst's bytes are free, and the last piece is paid for after it has arrived.
  EXPECT_GE(std::chrono::steady_clock::now() - started, 1s);
}

TEST(EgressTunnel, StoppingTheProxyLeavesNothing) {
  const Upstream site{echo};
  const Upstream mute{[](Wire& wire) { wire.read_all(); }};
  const std::ptrdiff_t before = open_channels();
  {
    LabPlan setup = tunnel_allowing(site);
    setup.allow.push_back(mute.authority("127.0.0.1"));
    setup.allow.emplace_back("held.test");
    Lab lab{std::move(setup)};
    std::vector<Wire> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(lab.tunnel(site.authority("127.0.0.1")));
    for (int i = 0; i < 10; ++i) {
      clients.push_back(lab.client());
      clients.back().send(get(mute.authority("127.0.0.1")));
      clients.push_back(lab.client());
      clients.back().send("GET http");
    }
    lab.on_loop([&] {
      lab.resolver.hold(lab.executor());
      return true;
    });
    clients.push_back(lab.client());
    clients.back().send(get("held.test"));
    EXPECT_TRUE(lab.until([&](const auto& now) {
      return now.connections == 31 &&
             lab.on_loop([&] { return lab.resolver.asked["held.test"]; }) == 1;
    }));
    lab.stop();
    for (Wire& client : clients) EXPECT_EQ(client.read_all(), "");
  }
  // The upstreams' threads close their side when they see the end.
  const auto limit = std::chrono::steady_clock::now() + 30s;
  while (open_channels() > before && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  EXPECT_EQ(open_channels(), before);
}

}  // namespace
}  // namespace berth::egress_test
