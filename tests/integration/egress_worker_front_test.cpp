#include "egress/worker_front.hpp"

#include "egress_room.hpp"

#include <netdb.h>
#include <sched.h>

// A worker's whole path: programs that do not know the proxy, in a network namespace with only a
// loopback, and a server whose machine is another namespace with a public address.
namespace berth::egress_test {
namespace {

constexpr const char* worker_public_v4 = "93.184.216.34";
constexpr const char* private_v4 = "10.0.0.1";
constexpr unsigned short web = 80;
constexpr unsigned short tls = 443;

struct FrontPlan {
  std::vector<std::string> allow = {"*", "*:22"};
  std::vector<std::string> deny = {};
  egress::Limits limits = {};
  std::vector<std::uint16_t> own_ports = {};
};

egress::Policy policy_of(std::vector<std::string> allow, std::vector<std::string> deny) {
  const auto policy =
      egress::Policy::parse({.allow = std::move(allow), .deny = std::move(deny), .log = {}});
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().message);
  return policy.value_or(egress::Policy{});
}

// A server side with its own thread and machine, which serves a room.
class Front {
 public:
  explicit Front(const Room& room, FrontPlan plan = {}) {
    for (const char* name : {"api.example.test", "other.example.test"}) {
      resolver.answers[name] = {{worker_public_v4}};
    }
    resolver.answers["loop.test"] = {{"127.0.0.1"}};
    resolver.answers["private.test"] = {{worker_public_v4, private_v4}};
    resolver.answers["inner.test"] = {{private_v4}};
    resolver.answers["metadata.test"] = {{"169.254.169.254"}};
    plan.limits.sweep_interval = 10ms;
    front_.emplace(loop_, resolver, clock_,
                   egress::WorkerFrontOptions{.worker = "test",
                                              .policy = policy_of(plan.allow, plan.deny),
                                              .limits = plan.limits,
                                              .own_ports = std::move(plan.own_ports)});
    tasks_.emplace(loop_.get_executor());
    egress::WorkerSockets sockets{.names = room.name_socket(), .proxy = room.listener(3128)};
    for (const unsigned short port : {web, tls, static_cast<unsigned short>(22)}) {
      sockets.transparent.push_back(room.listener(port));
    }
    EXPECT_TRUE(front_->listen(std::move(sockets)));
    thread_ = std::thread{[this] {
      EXPECT_EQ(::unshare(CLONE_NEWNET), 0);
      EXPECT_TRUE(raise_loopback());
      add_address_v4(worker_public_v4, "lo:1");
      add_address_v4(private_v4, "lo:2");
      loop_.run();
    }};
  }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;
  ~Front() {
    if (thread_.joinable()) stop();
  }

  template <class F>
  auto on_loop(F function) -> std::invoke_result_t<F> {
    std::promise<std::invoke_result_t<F>> promise;
    auto future = promise.get_future();
    boost::asio::post(loop_, [&] { promise.set_value(function()); });
    return future.get();
  }
  Listener listen(const char* address, unsigned short port) {
    return on_loop([&] { return listen_on(address, port); });
  }
  void set_rules(std::vector<std::string> allow) {
    on_loop([&] {
      front_->set_policy(policy_of(std::move(allow), {}));
      return true;
    });
  }
  // Waits until this many connections are over and returns the newest decision.
  egress::LogEntry entry_after(std::uint64_t requests) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (on_loop([this] { return front_->traffic().requests; }) < requests) {
      if (std::chrono::steady_clock::now() > limit) {
        ADD_FAILURE() << "no " << requests << " connections";
        break;
      }
      std::this_thread::yield();
    }
    return last();
  }
  egress::LogEntry last() {
    const auto entries = on_loop([this] { return front_->decisions(1); });
    return entries.empty() ? egress::LogEntry{} : entries.back();
  }
  void stop() {
    boost::asio::post(loop_, [this] { tasks_->start("test.stop", front_->stop()); });
    thread_.join();  // the loop has nothing left to do
    EXPECT_EQ(front_->traffic().connections, 0U);
  }

 private:
  boost::asio::io_context loop_{1};

 public:
  ScriptedResolver resolver;

 private:
  SystemClock clock_;
  std::optional<egress::WorkerFront> front_;
  std::optional<TaskGroup> tasks_;
  std::thread thread_;
};

// The reply on a separate connection: "" when it was reset or ended without a byte.
std::string ask(const Room& room, const std::string& host, unsigned short port) {
  Room::Dialled dialled = room.dial(host, port);
  EXPECT_EQ(dialled.error, 0) << host << " " << ::gai_strerror(dialled.error);
  if (!dialled.fd) return "";
  Wire wire{std::move(dialled.fd)};
  wire.send("GET /hello HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  return wire.read_all();
}

class EgressWorkerFront : public testing::Test {
 protected:
  void SetUp() override {
    if (!room.failure.empty()) GTEST_SKIP() << room.failure;
  }

  Room room;
};

TEST_F(EgressWorkerFront, APlainClientReachesANameByLookUpAndConnect) {
  Front front{room};
  const Upstream site{mirror, front.listen(worker_public_v4, tls)};
  EXPECT_TRUE(ask(room, "api.example.test", tls).contains("GET /hello"));
  const egress::LogEntry entry = front.entry_after(1);
  EXPECT_EQ(entry.method, "TCP");
  EXPECT_EQ(entry.host, "api.example.test");
  EXPECT_EQ(entry.port, tls);
  EXPECT_EQ(entry.address, worker_public_v4);
  EXPECT_EQ(entry.decision, egress::Outcome::allowed);
  EXPECT_EQ(entry.rule, "egress.allow[0] '*'");
  EXPECT_GT(entry.bytes_up, 0U);
  EXPECT_GT(entry.bytes_down, 0U);
  EXPECT_EQ(front.resolver.asked["api.example.test"], 1U);
}

TEST_F(EgressWorkerFront, ANodeProgramFetchesWithoutKnowingOfAProxy) {
  if (!room.run("node --version").starts_with("v")) GTEST_SKIP() << "node is not installed";
  Front front{room};
  const Upstream site{mirror, front.listen(worker_public_v4, web)};
  const std::string printed = room.run(
      "env -u http_proxy -u https_proxy node -e \"fetch('http://api.example.test/from-node')"
      ".then(r => r.text()).then(t => console.log(t)).catch(e => console.log('failed', e))\"");
  EXPECT_TRUE(printed.contains("GET /from-node HTTP/1.1")) << printed;
  EXPECT_TRUE(printed.contains("api.example.test")) << printed;
}

TEST_F(EgressWorkerFront, ANameThatLeadsInsideIsRefused) {
  Front front{room};
  const Upstream own{mirror, front.listen("127.0.0.1", tls)};
  const Upstream inner{mirror, front.listen(private_v4, tls)};
  std::uint64_t asked = 0;
  for (const char* name : {"loop.test", "private.test", "metadata.test"}) {
    EXPECT_EQ(ask(room, name, tls), "") << name;
    const egress::LogEntry entry = front.entry_after(++asked);
    EXPECT_EQ(entry.decision, egress::Outcome::denied) << name;
    EXPECT_TRUE(entry.rule.starts_with("special range")) << entry.rule;
  }
  EXPECT_EQ(own.connections() + inner.connections(), 0);
  front.set_rules({"*", "10.0.0.1/32:443"});
  EXPECT_TRUE(ask(room, "inner.test", tls).contains("GET /hello"));
  EXPECT_EQ(inner.connections(), 1);
}

TEST_F(EgressWorkerFront, AnAddressThatStandsForNoNameIsRefused) {
  Front front{room};
  EXPECT_EQ(ask(room, "198.18.77.77", tls), "");
  const egress::LogEntry entry = front.entry_after(1);
  EXPECT_EQ(entry.decision, egress::Outcome::denied);
  EXPECT_EQ(entry.rule, "address");
  EXPECT_EQ(entry.address, "198.18.77.77");
  EXPECT_EQ(entry.reason, "198.18.77.77 stands for no name");
}

TEST_F(EgressWorkerFront, ANameOrPortThatNoRuleAllowsIsRefused) {
  Front front{room, {.allow = {"api.example.test"}}};
  const Upstream site{mirror, front.listen(worker_public_v4, 22)};
  EXPECT_EQ(room.dial("other.example.test", tls).error, EAI_NONAME);
  EXPECT_EQ(front.last().method, "DNS");
  EXPECT_EQ(front.last().host, "other.example.test");
  EXPECT_EQ(front.resolver.asked.count("other.example.test"), 0U);
  EXPECT_EQ(ask(room, "api.example.test", 22), "");
  EXPECT_EQ(front.entry_after(1).rule, "default");
  EXPECT_EQ(site.connections(), 0);
}

TEST_F(EgressWorkerFront, ALiteralAddressIsDecidedAsAnAddress) {
  Front front{room, {.allow = {"*", "93.184.216.34/32:443"}}};
  room.enter([] { add_address_v4(worker_public_v4); });
  const Upstream site{mirror, front.listen(worker_public_v4, tls)};
  const Upstream own{mirror, front.listen("127.0.0.1", tls)};
  EXPECT_TRUE(ask(room, worker_public_v4, tls).contains("GET /hello"));
  EXPECT_EQ(front.entry_after(1).rule, "egress.allow[1] '93.184.216.34/32:443'");
  EXPECT_EQ(ask(room, worker_public_v4, web), "");
  EXPECT_EQ(ask(room, "127.0.0.1", tls), "");
  EXPECT_EQ(front.entry_after(3).rule, "special range 127.0.0.0/8");
  EXPECT_EQ(own.connections(), 0);
}

TEST_F(EgressWorkerFront, NoRuleOpensTheServersOwnPort) {
  Front front{room, {.allow = {"*", "127.0.0.1/32", "10.0.0.1/32"}, .own_ports = {tls}}};
  const Upstream api{mirror, front.listen("0.0.0.0", tls)};
  const Upstream other{mirror, front.listen("127.0.0.1", web)};
  for (const char* name : {"loop.test", "private.test", "api.example.test", "127.0.0.1"}) {
    EXPECT_EQ(ask(room, name, tls), "") << name;
  }
  EXPECT_EQ(front.entry_after(4).rule, "callback");
  EXPECT_EQ(api.connections(), 0);
  EXPECT_TRUE(ask(room, "loop.test", web).contains("GET /hello"));
}

TEST_F(EgressWorkerFront, ANewPolicyCutsAndStopLeavesNothing) {
  Front front{room};
  const Upstream site{[](Wire& wire) {
                        wire.send(wire.read_bytes(4));
                        wire.read_all();
                      },
                      front.listen(worker_public_v4, tls)};
  Wire one{std::move(room.dial("api.example.test", tls).fd)};
  Wire two{std::move(room.dial("other.example.test", tls).fd)};
  for (Wire* const wire : {&one, &two}) {
    wire->send("ping");
    EXPECT_EQ(wire->read_bytes(4), "ping");
  }
  front.set_rules({"other.example.test"});
  EXPECT_EQ(one.read_all(), "");
  EXPECT_EQ(front.entry_after(1).decision, egress::Outcome::cut);
  front.stop();
  EXPECT_EQ(two.read_all(), "");
  EXPECT_NE(room.dial("other.example.test", tls).error, 0);
}

TEST_F(EgressWorkerFront, ConnectionsBeyondTheLimitAreReset) {
  Front front{room, {.limits = {.connections_max = 1}}};
  const Upstream site{[](Wire& wire) {
                        wire.send(wire.read_bytes(4));
                        wire.read_all();
                      },
                      front.listen(worker_public_v4, tls)};
  Wire held{std::move(room.dial("api.example.test", tls).fd)};
  held.send("ping");
  EXPECT_EQ(held.read_bytes(4), "ping");
  EXPECT_EQ(ask(room, "api.example.test", tls), "");
}

TEST_F(EgressWorkerFront, AClientThatKnowsTheProxyMayUseIt) {
  Front front{room};
  const Upstream site{mirror, front.listen(worker_public_v4, web)};
  Wire wire{std::move(room.dial("127.0.0.1", 3128).fd)};
  EXPECT_EQ(wire.ask(get("api.example.test")).status, 200);
}

}  // namespace
}  // namespace berth::egress_test
