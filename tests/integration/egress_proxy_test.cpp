#include "base/files.hpp"
#include "egress_fixture.hpp"
#include "support/temporary_folder.hpp"

#include <poll.h>
#include <sys/un.h>

// What a client of the proxy gets: responses, refusals, limits, the log.
namespace berth::egress_test {
namespace {

LabPlan allowing(const Upstream& upstream) {
  return {.allow = {"127.0.0.1:" + std::to_string(upstream.port()),
                    "site.test:" + std::to_string(upstream.port())}};
}

TEST(EgressProxy, ForwardsARequestWithoutWhatIsAboutTheConnection) {
  const Upstream site{mirror};
  Lab lab{allowing(site)};
  lab.resolver.answers["site.test"] = {{"127.0.0.1"}};
  const Answer answer = lab.ask(get(site.authority("site.test"), "/a?b=c",
                                    "Proxy-Authorization: x\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
                                    "Authorization: Bearer t\r\nX-End: 2\r\n"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "GET /a?b=c HTTP/1.1\r\nHost: " + site.authority("site.test") +
                             "\r\nAuthorization: Bearer t\r\nX-End: 2\r\nVia: 1.1 berth\r\n"
                             "Connection: close\r\n\r\n");
}

TEST(EgressProxy, DecidesAboutEachRequestOfAConnection) {
  const Upstream site{mirror};
  Lab lab{allowing(site)};
  lab.resolver.answers["site.test"] = {{"127.0.0.1"}};
  Wire wire = lab.client();
  EXPECT_EQ(wire.ask(get(site.authority("site.test"))).status, 200);
  EXPECT_EQ(wire.ask(get("other.test")).status, 403);
  EXPECT_EQ(wire.ask(get(site.authority("127.0.0.1"))).status, 200);
  EXPECT_EQ(wire.ask(get("127.0.0.1:1")).status, 403);
  // Two requests in one piece are two requests.
  wire.send(get(site.authority("site.test"), "/one") + get(site.authority("site.test"), "/two"));
  EXPECT_TRUE(wire.read_answer().body.starts_with("GET /one "));
  EXPECT_TRUE(wire.read_answer().body.starts_with("GET /two "));
}

TEST(EgressProxy, ARefusalNamesTheRuleAndTheRemedy) {
  Lab lab{{.allow = {"*.good.test"}, .deny = {"bad.good.test"}}};
  const Answer unknown = lab.ask(connect("other.test:443"));
  EXPECT_EQ(unknown.status, 403);
  EXPECT_TRUE(unknown.body.contains(R"("rule":"default")")) << unknown.body;
  EXPECT_TRUE(unknown.body.contains("add 'other.test' to egress.allow")) << unknown.body;
  EXPECT_TRUE(unknown.header("Proxy-Status").contains("add 'other.test' to egress.allow"));
  const Answer denied = lab.ask(get("bad.good.test"));
  EXPECT_EQ(denied.status, 403);
  EXPECT_TRUE(denied.body.contains("egress.deny[0] 'bad.good.test'")) << denied.body;
  EXPECT_TRUE(lab.resolver.asked.empty()) << "a name that is refused was looked up";
}

TEST(EgressProxy, BodiesGoBothWaysInEveryFraming) {
  const std::string content(300'000, 'x');
  const Upstream site{[&](Wire& wire) {
    const std::string head = wire.read_until("\r\n\r\n");
    if (head.starts_with("GET /length")) {
      wire.send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + content + "excess");
    } else if (head.starts_with("GET /chunks")) {
      wire.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n493e0;x=y\r\n" + content +
                "\r\n0\r\nTrailer: t\r\n\r\n");
    } else {
      wire.send("HTTP/1.0 200 OK\r\n\r\n" + content);
    }
  }};
  Lab lab{allowing(site)};
  Wire wire = lab.client();
  for (const char* path : {"/length", "/chunks", "/close", "/length"}) {
    const Answer answer = wire.ask(get(site.authority("127.0.0.1"), path));
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.body, content) << path;
    EXPECT_EQ(answer.header("Connection"), "keep-alive") << path;
  }
  for (const char* path : {"/chunks", "/close"}) {
    const Answer old =
        lab.ask("GET http://" + site.authority("127.0.0.1") + path + " HTTP/1.0\r\n\r\n");
    EXPECT_EQ(old.header("Transfer-Encoding"), "");
    EXPECT_EQ(old.body, content) << path;
  }
}

TEST(EgressProxy, SendsABodyAsItCame) {
  const Upstream site{mirror};
  Lab lab{allowing(site)};
  const std::string line = "POST http://" + site.authority("127.0.0.1") +
                           "/ HTTP/1.1\r\nHost: " + site.authority("127.0.0.1") + "\r\n";
  Wire wire = lab.client();
  EXPECT_TRUE(wire.ask(line + "Content-Length: 5\r\n\r\nhello").body.ends_with("\r\n\r\nhello"));
  EXPECT_TRUE(
      wire.ask(line + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n")
          .body.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
  EXPECT_TRUE(wire.ask(line + "\r\n").body.contains("Content-Length: 0\r\n"));
}

TEST(EgressProxy, PassesOnTheInvitationToSendABody) {
  const Upstream site{[](Wire& wire) {
    wire.read_until("\r\n\r\n");
    wire.send("HTTP/1.1 100 Continue\r\n\r\n");
    const std::string body = wire.read_bytes(5);
    wire.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body);
  }};
  Lab lab{allowing(site)};
  Wire wire = lab.client();
  wire.send("POST http://" + site.authority("127.0.0.1") + "/ HTTP/1.1\r\nHost: " +
            site.authority("127.0.0.1") + "\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(wire.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(wire.ask("hello").body, "hello");
}

TEST(EgressProxy, AnAnswerThatComesBeforeTheBodyEndsTheRequest) {
  const Upstream site{[](Wire& wire) {
    wire.read_until("\r\n\r\n");
    wire.send("HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno");
    wire.read_all();
  }};
  Lab lab{allowing(site)};
  const Answer answer = lab.ask("POST http://" + site.authority("127.0.0.1") +
                                "/ HTTP/1.1\r\nHost: " + site.authority("127.0.0.1") +
                                "\r\nContent-Length: 1000000\r\n\r\nhello");
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.header("Connection"), "close");
}

TEST(EgressProxy, SaysWhyAnUpstreamDidNotAnswer) {
  const Upstream mute{[](Wire& wire) { wire.read_all(); }};
  const Upstream rude{[](Wire& wire) {
    const std::string head = wire.read_until("\r\n\r\n");
    if (head.starts_with("GET /twice")) {
      wire.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab");
    } else if (head.starts_with("GET /lf")) {
      wire.send("HTTP/1.1 200 OK\nContent-Length: 1\n\na");
    } else if (head.starts_with("GET /upgrade")) {
      wire.send("HTTP/1.1 101 Switching\r\n\r\n");
    } else if (head.starts_with("GET /long")) {
      wire.send("HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'a') + "\r\n\r\n");
    }
  }};
  const unsigned short nobody = listen_on("127.0.0.1").port;
  Lab impatient{{.allow = {mute.authority("127.0.0.1")}, .limits = {.idle_timeout = 200ms}}};
  EXPECT_EQ(impatient.ask(get(mute.authority("127.0.0.1"))).status, 504);
  Lab lab{{.allow = {rude.authority("127.0.0.1"), "127.0.0.1/32:" + std::to_string(nobody),
                     "lost.test"}}};
  for (const char* path : {"/", "/twice", "/lf", "/upgrade", "/long"}) {
    EXPECT_EQ(lab.ask(get(rude.authority("127.0.0.1"), path)).status, 502) << path;
  }
  EXPECT_EQ(lab.ask(get("127.0.0.1:" + std::to_string(nobody))).status, 502);
  EXPECT_EQ(lab.ask(connect("127.0.0.1:" + std::to_string(nobody))).status, 502);
  EXPECT_EQ(lab.ask(get("lost.test")).status, 502);
}

TEST(EgressProxy, RefusesWhatIsTooLarge) {
  const Upstream site{mirror};
  LabPlan setup = allowing(site);
  setup.limits.header_bytes_max = 4096;
  setup.limits.request_body_bytes_max = 1000;
  Lab lab{std::move(setup)};
  const std::string authority = site.authority("127.0.0.1");
  EXPECT_EQ(lab.ask(get(authority, "/", "A: " + std::string(5000, 'a') + "\r\n")).status, 431);
  EXPECT_EQ(lab.ask("GET http://" + std::string(100'000, 'a')).status, 431);
  const std::string post = "POST http://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n";
  EXPECT_EQ(lab.ask(post + "Content-Length: 1001\r\n\r\n" + std::string(1001, 'b')).status, 413);
  EXPECT_EQ(lab.ask(post + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'b') +
                    "\r\n0\r\n\r\n")
                .status,
            413);
  EXPECT_EQ(lab.ask(post + "Content-Length: 1000\r\n\r\n" + std::string(1000, 'b')).status, 200);
}

TEST(EgressProxy, AHeadThatTricklesIsCutOff) {
  Lab lab{{.limits = {.header_timeout = 300ms}}};
  Wire slow = lab.client();
  slow.send("GET http://a.test/ HTTP/1.1\r\n");
  // One more byte whenever nothing came for a while.
  pollfd answer{.fd = slow.fd(), .events = POLLIN, .revents = 0};
  while (::poll(&answer, 1, 20) == 0) slow.send("a");
  EXPECT_EQ(slow.read_answer().status, 408);
  Wire silent = lab.client();
  EXPECT_EQ(silent.read_answer().status, 408);
}

TEST(EgressProxy, OneSandboxHasOnlySoManyConnections) {
  const Upstream site{[](Wire& wire) { wire.read_all(); }};
  LabPlan setup = allowing(site);
  setup.limits.connections_max = 100;
  setup.limits.linger_timeout = 10min;
  Lab lab{std::move(setup)};
  std::vector<Wire> tunnels;
  for (int i = 0; i < 100; ++i) tunnels.push_back(lab.tunnel(site.authority("127.0.0.1")));
  int told = 0;
  int closed = 0;
  std::vector<Wire> excess;
  for (int i = 0; i < 900; ++i) {
    Wire wire = lab.client();
    const Answer answer = wire.read_answer();
    (answer.status == 429 ? told : closed) += 1;
    if (answer.status == 429) excess.push_back(std::move(wire));
  }
  EXPECT_EQ(told, 64);
  EXPECT_EQ(closed, 900 - 64);
  EXPECT_LE(lab.traffic().connections, 164U);
  excess.clear();
  tunnels.clear();
  EXPECT_TRUE(lab.until([](const auto& now) { return now.connections == 0; }));
  EXPECT_EQ(lab.ask(connect(site.authority("127.0.0.1"))).status, 200);
}

TEST(EgressProxy, OneSandboxHasOnlySoManyLookUps) {
  Lab lab{{.allow = {"*"}, .limits = {.lookups_max = 2}}};
  lab.on_loop([&] {
    lab.resolver.hold(lab.executor());
    return true;
  });
  Wire first = lab.client();
  Wire second = lab.client();
  first.send(get("a.test"));
  second.send(get("b.test"));
  EXPECT_TRUE(lab.until([&](const auto& /*now*/) {
    return lab.on_loop([&] { return lab.resolver.asked.size(); }) == 2;
  }));
  EXPECT_EQ(lab.ask(get("c.test")).status, 429);
  lab.on_loop([&] {
    lab.resolver.release();
    return true;
  });
  EXPECT_EQ(first.read_answer().status, 502);
  EXPECT_EQ(second.read_answer().status, 502);
}

TEST(EgressLogOfProxy, TellsWhatHappenedWithoutSecrets) {
  const tests::TemporaryFolder folder;
  const Upstream site{mirror};
  LabPlan setup = allowing(site);
  setup.log_path = folder.file("egress.jsonl");
  Lab lab{std::move(setup)};
  lab.resolver.answers["site.test"] = {{"127.0.0.1"}};
  const Answer answer = lab.ask(get(site.authority("site.test"), "/path?key=hunter2",
                                    "Authorization: Bearer hunter2\r\nCookie: hunter2\r\n"));
  egress::LogEntry entry = lab.entry_after(1);
  EXPECT_EQ(entry.method, "GET");
  EXPECT_EQ(entry.host, "site.test");
  EXPECT_EQ(entry.port, site.port());
  EXPECT_EQ(entry.path, "/path");
  EXPECT_EQ(entry.address, "127.0.0.1");
  EXPECT_EQ(entry.decision, egress::Outcome::allowed);
  EXPECT_EQ(entry.rule, "egress.allow[1] '" + site.authority("site.test") + "'");
  EXPECT_EQ(entry.status, 200U);
  EXPECT_EQ(entry.bytes_up, answer.body.size());
  EXPECT_EQ(entry.bytes_down, answer.head.size() + answer.body.size());
  lab.ask(connect("other.test:443"));
  entry = lab.entry_after(2);
  EXPECT_EQ(entry.decision, egress::Outcome::denied);
  EXPECT_EQ(entry.rule, "default");
  lab.ask("GET http://a.test/?hunter2 HTTP/1.1\r\nHost: hunter2.test\r\n\r\n");
  EXPECT_EQ(lab.entry_after(3).rule, "request");
  lab.stop();
  const std::string file = *read_file(folder.file("egress.jsonl"), 1UL << 20U);
  EXPECT_EQ(std::ranges::count(file, '\n'), 3);
  EXPECT_FALSE(file.contains("key=")) << file;
  EXPECT_FALSE(file.contains("Bearer")) << file;
}

const std::string token = "Authorization: Bearer run-token\r\n";

TEST(EgressCallback, ReachesTheApiAndNothingElse) {
  const Upstream api{mirror};
  const egress::Callback callback{.address = *egress::Address::parse("127.0.0.1"),
                                  .port = api.port(),
                                  .host = "api.local:7000"};
  Lab lab{{.allow = {api.authority("127.0.0.1"), api.authority("api.test")}, .callback = callback}};
  lab.resolver.answers["api.test"] = {{"127.0.0.1"}};
  const Answer answer = lab.ask(get("berth.internal", "/api/runs?x=1", token));
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body.starts_with("GET /api/runs?x=1 HTTP/1.1\r\nHost: api.local:7000\r\n"));
  EXPECT_TRUE(answer.body.contains(token));
  EXPECT_EQ(lab.entry_after(1).rule, "callback");
  for (const char* path : {"/", "/metrics", "/api/../metrics", "/api/%2e%2e/metrics"}) {
    EXPECT_EQ(lab.ask(get("berth.internal", path, token)).status, 403) << path;
  }
  EXPECT_EQ(lab.ask(connect("berth.internal:80")).status, 403);
  EXPECT_EQ(lab.ask(connect("berth.internal:" + std::to_string(api.port()))).status, 403);
  // Not even a rule allows access that checks neither path nor token.
  for (const std::string host : {"127.0.0.1", "127.0.0.2", "api.test"}) {
    EXPECT_EQ(lab.ask(get(api.authority(host), "/api/runs", token)).status, 403) << host;
    EXPECT_EQ(lab.ask(connect(api.authority(host))).status, 403) << host;
  }
  EXPECT_EQ(api.connections(), 1);
}

// Addresses other than 127.0.0.1 that reach listeners on this machine.
std::vector<std::string> other_own_addresses() {
  std::vector<std::string> own{"0.0.0.0"};
  for (const egress::SpecialRange& range : egress::addresses_of_this_machine()) {
    const egress::Address& address = range.range.first;
    const bool v4 = address.family == egress::Address::Family::v4;
    if (v4 && address.bytes[0] != 127) own.push_back(address.str());
  }
  return own;
}

TEST(EgressCallback, NoRuleOpensTheApiByAnotherAddressOfThisMachine) {
  const Upstream api{mirror, listen_on("0.0.0.0")};
  const std::string port = ":" + std::to_string(api.port());
  std::vector<std::string> allow{"[::ffff:127.0.0.1/128]" + port, "[::ffff:0.0.0.0/128]" + port,
                                 "*" + port};
  for (const std::string& own : other_own_addresses()) allow.push_back(own + "/32" + port);
  Lab with_callback{{.allow = allow,
                     .callback = egress::Callback{.address = *egress::Address::parse("127.0.0.1"),
                                                  .port = api.port(),
                                                  .host = "api.local:7000"}}};
  // A server with TLS has no callback, but listens nevertheless.
  Lab with_port{{.allow = allow, .own_ports = {api.port()}}};
  for (Lab* const lab : {&with_callback, &with_port}) {
    lab->resolver.answers["mapped.test"] = {{"::ffff:127.0.0.1"}};
    lab->resolver.answers["nowhere.test"] = {{"::ffff:0.0.0.0"}};
    for (const std::string& own : other_own_addresses()) {
      EXPECT_EQ(lab->ask(connect(own + port)).status, 403) << own;
      EXPECT_EQ(lab->ask(get(own + port, "/api/runs")).status, 403) << own;
    }
    EXPECT_EQ(lab->ask(connect("mapped.test" + port)).status, 403);
    EXPECT_EQ(lab->ask(connect("nowhere.test" + port)).status, 403);
    EXPECT_EQ(lab->decisions().back().rule, "callback");
  }
  EXPECT_EQ(api.connections(), 0);
}

TEST(EgressCallback, OtherPortsOfThisMachineRemainUpToTheRules) {
  const Upstream service{mirror, listen_on("0.0.0.0")};
  const std::string at = ":" + std::to_string(service.port());
  Lab lab{{.allow = {"0.0.0.0/32" + at}, .own_ports = {1}}};
  EXPECT_EQ(lab.ask(get("0.0.0.0" + at)).status, 200);
}

TEST(EgressCallback, ASandboxWithoutATokenIsNotTheOperatorOfTheMachine) {
  const Upstream api{mirror};
  Lab lab{{.callback = egress::Callback{.address = *egress::Address::parse("127.0.0.1"),
                                        .port = api.port(),
                                        .host = "api.local:7000"}}};
  EXPECT_EQ(lab.ask(get("berth.internal", "/api/runs")).status, 401);
  EXPECT_EQ(
      lab.ask(get("berth.internal", "/api/runs", token + "Connection: authorization\r\n")).status,
      401);
  EXPECT_EQ(api.connections(), 0);
}

TEST(EgressCallback, HasADoorOfItsOwn) {
  const Upstream api{mirror};
  Lab lab{{.allow = {"*"},
           .callback = egress::Callback{.address = *egress::Address::parse("127.0.0.1"),
                                        .port = api.port(),
                                        .host = "api.local:7000"}}};
  Listener own = listen_on("127.0.0.1");
  lab.listen(std::move(own.fd), egress::Door::callback);
  const auto status = [&](std::string_view request) {
    return Wire::connect_to(own.port).ask(request).status;
  };
  const std::string host = " HTTP/1.1\r\nHost: 127.0.0.1:1\r\n";
  EXPECT_EQ(status("GET /api/runs" + host + token + "\r\n"), 200);
  EXPECT_EQ(status("GET /api/runs" + host + "\r\n"), 401);
  EXPECT_EQ(status("GET /metrics" + host + token + "\r\n"), 403);
  EXPECT_EQ(status(get("example.org", "/api/", token)), 403);
  EXPECT_EQ(status(connect("example.org:443")), 400);
}

TEST(EgressCallback, TakesAUnixSocketAndMayBeAbsent) {
  const tests::TemporaryFolder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder.file("api.sock");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Listener listener{.fd = Fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)}};
  ASSERT_EQ(::bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  ASSERT_EQ(::listen(listener.fd.get(), 8), 0);
  const Upstream api{mirror, std::move(listener)};
  Lab lab{{.callback = egress::Callback{.unix_path = path, .host = "localhost"}}};
  EXPECT_EQ(lab.ask(get("berth.internal", "/api/x", token)).status, 200);
  Lab without{{.allow = {"*"}}};
  EXPECT_EQ(without.ask(get("berth.internal", "/api/x", token)).status, 403);
}

}  // namespace
}  // namespace berth::egress_test
