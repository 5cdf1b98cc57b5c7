#include "egress_room.hpp"

#include "egress/resolver.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

extern char** environ;

// Real name resolution: the proxy asks its machine's resolver, glibc asks the name server in
// resolv.conf, and that is dnsmasq. All of them are in the test's own network namespace.
namespace berth::egress_test {
namespace {

constexpr const char* name_server = "/usr/sbin/dnsmasq";

std::string dns_query(const std::string& name) {
  std::string query{"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12};
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    query += static_cast<char>(end - at) + name.substr(at, end - at);
    at = end + 1;
  }
  return query + std::string{"\0\0\x01\0\x01", 5};
}

// The name server's raw UDP answer; empty when there is none at once.
std::string ask_by_udp(const std::string& name) {
  const Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(53);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string query = dns_query(name);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      ::send(fd.get(), query.data(), query.size(), 0) < 0) {
    return {};
  }
  std::string answer(4096, '\0');
  const ssize_t got = ::recv(fd.get(), answer.data(), answer.size(), 0);
  answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return answer;
}

bool is_truncated(const std::string& answer) {
  return answer.size() > 3 && (answer[2] & 0x02) != 0;
}

// dnsmasq, authoritative for "test", in the calling thread's namespace.
class NameServer {
 public:
  NameServer(const std::string& hosts, std::vector<std::string> records) : hosts_(hosts) {
    records.insert(records.begin(), {name_server, "--keep-in-foreground", "--conf-file=/dev/null",
                                     "--no-resolv", "--no-hosts", "--addn-hosts=" + hosts,
                                     "--user=root", "--pid-file=", "--log-facility=/dev/null",
                                     "--listen-address=127.0.0.1", "--bind-interfaces",
                                     "--local=/test/", "--host-record=ready.test,93.184.216.34"});
    std::vector<char*> words;
    for (std::string& word : records) words.push_back(word.data());
    words.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&child_, name_server, nullptr, nullptr, words.data(), environ), 0);
    EXPECT_TRUE(answers_soon("ready.test"));
  }
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  ~NameServer() { end(); }

  void end() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, 0), nullptr, 0);
  }
  // From now on this name has only this address.
  void move(const std::string& name, const std::string& address) const {
    std::ofstream{hosts_} << address << " " << name << "\n";
    ::kill(child_, SIGHUP);
    in_addr bytes{};
    ::inet_pton(AF_INET, address.c_str(), &bytes);
    const std::string wanted{reinterpret_cast<const char*>(&bytes), sizeof bytes};
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!ask_by_udp(name).ends_with(wanted)) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << name;
    }
  }

 private:
  static bool answers_soon(const std::string& name) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (ask_by_udp(name).empty()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::string hosts_;
  pid_t child_ = 0;
};

// `count` addresses for one name.
std::vector<std::string> records_of(const std::string& name, int count) {
  std::vector<std::string> records;
  for (int number = 1; number <= count; ++number) {
    records.push_back("--host-record=" + name + ",93.184.217." + std::to_string(number));
  }
  return records;
}

class EgressDns : public testing::Test {
 protected:
  // Runs it in a namespace with public addresses and this name server, with a proxy that allows
  // every name in "test". Each request resolves names anew.
  void with(std::vector<std::string> records,
            const std::function<void(Lab&, NameServer&)>& body) const {
    if (::access(name_server, X_OK) != 0) GTEST_SKIP() << name_server << " is not installed";
    if (!room_.failure.empty()) GTEST_SKIP() << room_.failure;
    room_.enter([&] {
      add_address_v4(public_v4);
      const bool has_v6 = add_address_v6(public_v6);
      NameServer names{folder_.file("hosts"), std::move(records)};
      asio::thread_pool pool{4};
      const egress::ResolverLimits limits{.keep = 0ms, .keep_failed = 0ms};
      Lab lab{{.allow = {"*.test"},
               .special = egress::special_ranges(),
               .resolver = [&](const asio::any_io_executor& executor) {
                 return std::make_unique<egress::SystemResolver>(executor, pool, limits);
               }}};
      const Upstream site{mirror, listen_on(public_v4, 80)};
      const Upstream own{mirror, listen_on("127.0.0.1", 80)};
      std::optional<Upstream> modern;
      if (has_v6) modern.emplace(mirror, listen_on(public_v6, 80));
      body(lab, names);
      lab.stop();
      EXPECT_EQ(own.connections(), 0) << "of the loopback of the proxy's own machine";
    });
  }

  tests::TemporaryFolder folder_;
  Room room_;
};

TEST_F(EgressDns, FollowsNamesAliasesAndBothFamilies) {
  with({"--host-record=site.test,93.184.216.34", "--cname=alias.test,site.test",
        "--cname=alias-of-alias.test,alias.test", "--host-record=six.test,2606:2800:220:1::1",
        "--host-record=both.test,93.184.216.34,2606:2800:220:1::1"},
       [](Lab& lab, NameServer& /*names*/) {
         for (const char* name : {"site.test", "alias.test", "alias-of-alias.test", "six.test",
                                  "both.test", "SITE.test"}) {
           EXPECT_EQ(lab.ask(get(name)).status, 200) << name;
         }
         Wire tunnel = lab.tunnel("alias.test:80");
         EXPECT_EQ(tunnel.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
       });
}

TEST_F(EgressDns, ReportsNamesWithoutAddresses) {
  with({"--txt-record=text.test,words", "--cname=dangling.test,nowhere.test"},
       [](Lab& lab, NameServer& names) {
         for (const char* name : {"nowhere.test", "text.test", "dangling.test"}) {
           const Answer answer = lab.ask(get(name));
           EXPECT_EQ(answer.status, 502) << name;
           EXPECT_TRUE(answer.body.contains(name)) << answer.body;
         }
         names.end();
         EXPECT_EQ(lab.ask(get("ready.test")).status, 502) << "the name server is gone";
       });
}

TEST_F(EgressDns, RefusesNamesThatLeadToPrivateAddresses) {
  with({"--host-record=near.test,127.0.0.1", "--host-record=private.test,10.0.0.5",
        "--host-record=metadata.test,169.254.169.254", "--cname=alias.test,private.test",
        "--host-record=mapped.test,::ffff:127.0.0.1", "--host-record=six.test,::1",
        "--host-record=mixed.test,93.184.216.34", "--host-record=mixed.test,127.0.0.1",
        "--host-record=zero.test,0.0.0.0"},
       [](Lab& lab, NameServer& /*names*/) {
         for (const char* name : {"near.test", "private.test", "metadata.test", "alias.test",
                                  "mapped.test", "six.test", "mixed.test", "zero.test"}) {
           EXPECT_EQ(lab.ask(get(name)).status, 403) << name;
           EXPECT_EQ(lab.client().ask(connect(std::string{name} + ":80")).status, 403) << name;
         }
       });
}

TEST_F(EgressDns, RefusesANameThatMovesToAPrivateAddress) {
  with({}, [](Lab& lab, NameServer& names) {
    names.move("turn.test", public_v4);
    EXPECT_EQ(lab.ask(get("turn.test")).status, 200);
    names.move("turn.test", "127.0.0.1");
    EXPECT_EQ(lab.ask(get("turn.test")).status, 403);
    names.move("turn.test", public_v4);
    EXPECT_EQ(lab.ask(get("turn.test")).status, 200);
  });
}

TEST_F(EgressDns, ReadsTruncatedAnswersToTheirEnd) {
  std::vector<std::string> records = records_of("many.test", 32);
  std::ranges::copy(records_of("too-many.test", 40), std::back_inserter(records));
  with(records, [](Lab& lab, NameServer& /*names*/) {
    ASSERT_TRUE(is_truncated(ask_by_udp("many.test"))) << "the test would prove nothing";
    for (int number = 1; number <= 32; ++number) {
      const std::string address = "93.184.217." + std::to_string(number);
      lab.set_rules({"*.test"}, {address + "/32"});
      const Answer answer = lab.ask(get("many.test"));
      EXPECT_EQ(answer.status, 403) << address;
      EXPECT_TRUE(answer.body.contains(address + "/32")) << answer.body;
    }
    const Answer answer = lab.ask(get("too-many.test"));
    EXPECT_EQ(answer.status, 502);
    EXPECT_TRUE(answer.body.contains("40 addresses")) << answer.body;
  });
}

}  // namespace
}  // namespace berth::egress_test
