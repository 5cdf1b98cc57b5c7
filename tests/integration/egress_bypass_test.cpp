#include "egress_fixture.hpp"

// Known ways around the policy of other proxies. Each must be refused, and no connection may reach
// the forbidden server.
namespace berth::egress_test {
namespace {

// A server that the policy does not allow, and one that it does.
class EgressBypass : public testing::Test {
 protected:
  EgressBypass() : allowed_(mirror), forbidden_(mirror), lab_(setup()) {
    lab_.resolver.answers["good.test"] = {{"127.0.0.1"}};
    lab_.resolver.answers["evil.test"] = {{"127.0.0.1"}};
  }
  ~EgressBypass() override { EXPECT_EQ(forbidden_.connections(), 0); }

  // The forbidden server has its own port: only good.test at one port is allowed.
  LabPlan setup() const {
    return {.allow = {"good.test:" + std::to_string(allowed_.port()), "*.good.test"}};
  }
  std::string good() const { return allowed_.authority("good.test"); }

  Upstream allowed_;
  Upstream forbidden_;
  Lab lab_;
};

TEST_F(EgressBypass, AddressesInAnySpellingAreNoWayAround) {
  for (const std::string host : {"127.0.0.1",
                                 "127.1",
                                 "127.0.1",
                                 "2130706433",
                                 "0x7f000001",
                                 "0x7f.0.0.1",
                                 "0177.0.0.1",
                                 "017700000001",
                                 "0x7f.1",
                                 "127.0.0.1.",
                                 "127.000.000.001",
                                 "[::1]",
                                 "[::ffff:127.0.0.1]",
                                 "[::ffff:7f00:1]",
                                 "[::127.0.0.1]",
                                 "[0:0:0:0:0:0:0:1]",
                                 "[::1%25lo]",
                                 "[::1%lo]",
                                 "[fe80::1]",
                                 "[64:ff9b::7f00:1]",
                                 "[2002:7f00:1::]",
                                 "0.0.0.0",
                                 "0",
                                 "localhost",
                                 "[::]",
                                 "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1"}) {
    const std::string authority = forbidden_.authority(host);
    for (const std::string& request : {get(authority), connect(authority)}) {
      const int status = lab_.ask(request).status;
      EXPECT_TRUE(status == 403 || status == 400) << host << " got " << status;
    }
  }
}

TEST_F(EgressBypass, AnAuthorityHasOneHost) {
  const std::string evil = forbidden_.authority("evil.test");
  for (const std::string& authority :
       {good() + "@" + evil, "good.test@" + evil, evil + "#@" + good(), evil + "?@" + good(),
        evil + "\\@" + good(), evil + "%40" + good(), evil + "," + good(), good() + "%00." + evil,
        good() + "%0d%0aHost:" + evil, evil + ";" + good(), "good.test%2f" + evil}) {
    EXPECT_EQ(lab_.ask(connect(authority)).status, 400) << authority;
    const int status = lab_.ask(get(authority)).status;
    EXPECT_TRUE(status == 400 || status == 403) << authority << " got " << status;
  }
  // Subdomains match by suffix, not by similarity.
  for (const std::string host :
       {"good.test.evil.test", "evilgood.test", "good.test.", "good-test"}) {
    const std::string authority = forbidden_.authority(host);
    EXPECT_EQ(lab_.ask(connect(authority)).status, 403) << host;
  }
}

TEST_F(EgressBypass, HostCannotDifferFromTheTarget) {
  const std::string evil = forbidden_.authority("evil.test");
  for (const std::string& request :
       {"GET http://" + good() + "/ HTTP/1.1\r\nHost: " + evil + "\r\n\r\n",
        "GET http://" + evil + "/ HTTP/1.1\r\nHost: " + good() + "\r\n\r\n",
        "GET http://" + good() + "/ HTTP/1.1\r\nHost: " + good() + "\r\nHost: " + evil + "\r\n\r\n",
        "GET http://" + good() + "/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: " + good() + "\r\n\r\n",
        "GET //" + evil + "/ HTTP/1.1\r\nHost: " + good() + "\r\n\r\n",
        "CONNECT " + good() + " HTTP/1.1\r\nHost: " + evil + "\r\n\r\n"}) {
    EXPECT_EQ(lab_.ask(request).status, 400) << request;
  }
  EXPECT_EQ(allowed_.connections(), 0);
}

TEST_F(EgressBypass, PortsAreAPartOfTheRule) {
  EXPECT_EQ(lab_.ask(connect(forbidden_.authority("good.test"))).status, 403);
  EXPECT_EQ(lab_.ask(get(forbidden_.authority("good.test"))).status, 403);
  EXPECT_EQ(lab_.ask(connect("www.good.test:22")).status, 403);
  EXPECT_EQ(lab_.ask(connect("good.test")).status, 400);
  EXPECT_EQ(lab_.ask(connect("good.test:0")).status, 400);
  EXPECT_EQ(lab_.ask(connect("good.test:" + std::to_string(65536 + allowed_.port()))).status, 400);
}

// What a smuggler tries to send as a second request, through a proxy that sees only one.
TEST_F(EgressBypass, NoRequestIsSmuggledBehindAnother) {
  const std::string evil = get(forbidden_.authority("evil.test"));
  const std::string line = "POST http://" + good() + "/ HTTP/1.1\r\nHost: " + good() + "\r\n";
  for (const std::string& request :
       {line + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
        line + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + evil,
        line + "Content-Length: 0\r\nContent-Length: 500\r\n\r\n" + evil,
        line + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + evil,
        line + "Content-Length: 0, 500\r\n\r\n" + evil,
        line + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + evil,
        line + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + evil,
        line + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n" + evil,
        line + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + evil,
        line +
            "Transfer-Encoding:\x0b"
            "chunked\r\n\r\n0\r\n\r\n" +
            evil,
        line + "Content-Length: 5\r\n Transfer-Encoding: chunked\r\n\r\nhello" + evil,
        line + "A: b\r\n\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
        line + "A: b\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
        line + "A: b\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
        line + std::string{"A: b\0\r\n\r\n", 9} + evil,
        line + "Connection: content-length\r\nContent-Length: 500\r\n\r\n" + evil,
        "GET http://" + good() + "/ HTTP/1.1\nHost: " + good() + "\n\n" + evil,
        "GET http://" + good() + "/\r\nX: y HTTP/1.1\r\nHost: " + good() + "\r\n\r\n" + evil,
        "GET http://" + good() + "/ HTTP/1.1\r\nHost: " + good() + "\r\nX y\r\n\r\n" + evil}) {
    Wire wire = lab_.client();
    const Answer answer = wire.ask(request);
    EXPECT_EQ(answer.status, 400) << request;
    EXPECT_EQ(wire.read_all(), "") << "the connection went on behind " << request;
  }
  EXPECT_EQ(allowed_.connections(), 0);
}

TEST_F(EgressBypass, NoRequestHidesInAChunk) {
  const std::string evil = get(forbidden_.authority("evil.test"));
  const std::string line = "POST http://" + good() + "/ HTTP/1.1\r\nHost: " + good() +
                           "\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string chunks :
       {"5\r\nhelloX\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "-1\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", "fffffffffffffffffff\r\nhello",
        "g\r\n\r\n", "5;\n\r\nhello\r\n0\r\n\r\n", "\r\n5\r\nhello\r\n0\r\n\r\n"}) {
    Wire wire = lab_.client();
    EXPECT_EQ(wire.ask(line + chunks + evil).status, 400) << chunks;
    EXPECT_EQ(wire.read_all(), "");
  }
}

TEST_F(EgressBypass, AConnectHasNoBodyAndARefusedOneNoSequel) {
  const std::string evil = get(forbidden_.authority("evil.test"));
  for (const std::string& request :
       {"CONNECT " + good() + " HTTP/1.1\r\nHost: " + good() + "\r\nContent-Length: 5\r\n\r\nhello",
        "CONNECT " + good() + " HTTP/1.1\r\nHost: " + good() +
            "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
    Wire wire = lab_.client();
    EXPECT_EQ(wire.ask(request + evil).status, 400);
    EXPECT_EQ(wire.read_all(), "");
  }
  Wire refused = lab_.client();
  EXPECT_EQ(refused.ask(connect("other.test:443") + get(good())).status, 403);
  EXPECT_EQ(refused.read_all(), "");
  EXPECT_EQ(allowed_.connections(), 0);
}

TEST_F(EgressBypass, ATunnelIsNotReadAsRequests) {
  // Tunnel data is opaque: the upstream gets it, the proxy does not act on it.
  Wire wire = lab_.tunnel(good());
  const Answer answer = wire.ask(get(forbidden_.authority("evil.test")));
  EXPECT_TRUE(answer.body.starts_with("GET http://" + forbidden_.authority("evil.test")));
}

class EgressRebinding : public testing::TestWithParam<const char*> {};

TEST_P(EgressRebinding, ANameThatLeadsInsideIsRefused) {
  const Upstream inside{mirror};
  const std::string port = std::to_string(inside.port());
  Lab lab{{.allow = {"*", "*:" + port, "0.0.0.0/0", "::/0"}, .special = egress::special_ranges()}};
  lab.resolver.answers["rebind.test"] = {{GetParam()}};
  lab.resolver.answers["mixed.test"] = {{"93.184.216.34", GetParam()}};
  lab.resolver.answers["mixed-first.test"] = {{GetParam(), "93.184.216.34"}};
  for (const std::string host : {"rebind.test", "mixed.test", "mixed-first.test"}) {
    const Answer tunnel = lab.ask(connect(host + ":" + port));
    EXPECT_EQ(tunnel.status, 403) << host;
    EXPECT_TRUE(tunnel.body.contains("special range")) << tunnel.body;
    EXPECT_EQ(lab.ask(get(host + ":" + port)).status, 403) << host;
  }
  EXPECT_EQ(lab.entry_after(6).address, GetParam());
  EXPECT_EQ(inside.connections(), 0);
}

INSTANTIATE_TEST_SUITE_P(Inside, EgressRebinding,
                         testing::Values("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1",
                                         "192.168.1.1", "169.254.1.1", "169.254.169.254",
                                         "100.64.0.1", "0.0.0.0", "::1", "fe80::1", "fd00::1",
                                         "fd00:ec2::254", "::ffff:127.0.0.1",
                                         "::", "64:ff9b::7f00:1", "224.0.0.1"));

TEST(EgressRebindingOverTime, EachRequestIsDecidedByTheAnswerItConnectsTo) {
  const Upstream site{mirror};
  Lab lab{{.allow = {site.authority("turn.test")}}};
  // The name is resolved once per request: the checked address is the connected one.
  lab.resolver.answers["turn.test"] = {{"127.0.0.1"}, {"10.0.0.1"}, {"127.0.0.1"}};
  Wire wire = lab.client();
  EXPECT_EQ(wire.ask(get(site.authority("turn.test"))).status, 200);
  EXPECT_EQ(wire.ask(get(site.authority("turn.test"))).status, 403);
  EXPECT_EQ(wire.ask(get(site.authority("turn.test"))).status, 200);
  EXPECT_EQ(lab.on_loop([&] { return lab.resolver.asked["turn.test"]; }), 3U);
}

TEST(EgressRebindingOverTime, APolicyThatChangesDuringALookUpCounts) {
  const Upstream site{mirror};
  Lab lab{{.allow = {site.authority("slow.test")}}};
  lab.on_loop([&] {
    lab.resolver.answers["slow.test"] = {{"127.0.0.1"}};
    lab.resolver.hold(lab.executor());
    return true;
  });
  Wire wire = lab.client();
  wire.send(get(site.authority("slow.test")));
  EXPECT_TRUE(lab.until([&](const auto& /*now*/) {
    return lab.on_loop([&] { return lab.resolver.asked["slow.test"]; }) == 1;
  }));
  lab.set_rules({});
  lab.on_loop([&] {
    lab.resolver.release();
    return true;
  });
  EXPECT_EQ(wire.read_answer().status, 403);
  EXPECT_EQ(site.connections(), 0);
}

}  // namespace
}  // namespace berth::egress_test
