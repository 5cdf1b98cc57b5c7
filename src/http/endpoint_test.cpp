#include "http/endpoint.hpp"
#include "http/server/bearer_gate.hpp"

#include "support/http.hpp"

#include <atomic>

namespace berth::http {
namespace {

using http_test::Answer;
using http_test::Client;
using http_test::json_request;
using http_test::request;
using http_test::TestServer;

BOOST_DEFINE_ENUM_CLASS(Colour, red, blue)

struct ThingPath {
  core::CompanyId company_id;
  std::int32_t number;
};
BOOST_DESCRIBE_STRUCT(ThingPath, (), (company_id, number))

struct ThingQuery {
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
  std::optional<bool> all;
  std::optional<Colour> colour;
  std::optional<core::AgentId> agent_id;
};
BOOST_DESCRIBE_STRUCT(ThingQuery, (), (limit, after, all, colour, agent_id))

struct ThingBody {
  std::string name;
  std::optional<std::vector<std::int64_t>> sizes;
};
BOOST_DESCRIBE_STRUCT(ThingBody, (), (name, sizes))

// Returns the handler's input as the response.
struct Seen {
  std::optional<std::string> company;
  std::optional<std::int64_t> limit;
  std::optional<Colour> colour;
  std::optional<std::string> name;
  std::optional<std::string> once;
  std::optional<std::string> fingerprint;
  std::optional<std::int64_t> if_version;
  std::optional<core::RunId> run_id;
  std::string request_id;
};
BOOST_DESCRIBE_STRUCT(Seen, (),
                      (company, limit, colour, name, once, fingerprint, if_version, run_id,
                       request_id))

Seen seen(const core::Call& call) {
  Seen out;
  if (call.once) out.once = call.once->key;
  if (call.once) out.fingerprint = call.once->fingerprint;
  out.if_version = call.if_version;
  out.run_id = call.run_id;
  out.request_id = call.request_id;
  return out;
}

Task<Seen> create(core::Call call, Input<ThingPath, ThingQuery, ThingBody> input) {
  Seen out = seen(call);
  out.company = input.path.company_id.str();
  out.limit = input.query.limit;
  out.colour = input.query.colour;
  out.name = input.body.name;
  co_return out;
}

Task<core::Stored<Seen>> change(core::Call call, Input<None, None, None> /*input*/) {
  co_return core::Stored<Seen>{.value = seen(call), .version = 7};
}

Task<core::Listing<std::int64_t>> list(core::Call /*call*/, Input<None, ThingQuery, None> input) {
  core::Listing<std::int64_t> page{.rows = {1, 2}, .next = {}};
  if (input.query.after != "end") page.next = "17.a b";
  co_return page;
}

Task<NoContent> drop(core::Call /*call*/, Input<None, None, None> /*input*/) {
  co_return NoContent{};
}

Task<bj::value> refuse(core::Call /*call*/, Input<None, None, None> /*input*/) {
  co_return fail(Errc::conflict, "thing 7: is busy", "wait");
}

Task<Response> echo(core::Call /*call*/, Input<None, None, RawBody> input) {
  co_return Response{.content_type = "application/octet-stream",
                     .body = std::string{input.body.bytes}};
}

Task<> turn_away() {
  co_return fail(Errc::lease_not_found, "lease 7: is not there");
}

Task<Fd> nowhere() {
  co_return fail(Errc::lease_not_found, "lease 7: is not there");
}

std::vector<Route> routes() {
  using core::Permission;
  return {
      Endpoint<None, None, RawBody, Response>{.verb = Verb::put,
                                              .path = "/api/bytes",
                                              .needs = Permission::open,
                                              .tag = "test",
                                              .says = "Test",
                                              .call = echo},
      Endpoint<ThingPath, ThingQuery, ThingBody, Seen>{.verb = Verb::post,
                                                       .path = "/api/{company_id}/things/{number}",
                                                       .needs = Permission::signed_in,
                                                       .tag = "things",
                                                       .says = "Make a thing",
                                                       .status = 201,
                                                       .call = create},
      Endpoint<None, None, None, core::Stored<Seen>>{.verb = Verb::patch,
                                                     .path = "/api/thing",
                                                     .needs = Permission::open,
                                                     .tag = "test",
                                                     .says = "Test",
                                                     .call = change},
      Endpoint<None, ThingQuery, None, core::Listing<std::int64_t>>{.path = "/api/things",
                                                                    .needs = Permission::open,
                                                                    .tag = "test",
                                                                    .says = "Test",
                                                                    .call = list},
      Endpoint<None, None, None, NoContent>{.verb = Verb::delete_,
                                            .path = "/api/thing",
                                            .needs = Permission::open,
                                            .tag = "test",
                                            .says = "Test",
                                            .call = drop},
      Endpoint<None, None, None, bj::value>{.path = "/api/busy",
                                            .needs = Permission::open,
                                            .tag = "test",
                                            .says = "Test",
                                            .call = refuse},
      Endpoint<None, None, None, NoContent>{.path = "/api/self",
                                            .needs = Permission::agent_self,
                                            .tag = "test",
                                            .says = "Test",
                                            .call = drop},
  };
}

constexpr const char* company = "0190b2a4-0000-7000-8000-000000000001";
const std::string thing = "POST /api/" + std::string{company} + "/things/5";

class EndpointTest : public testing::Test {
 protected:
  Answer ask(std::string_view text) { return client_.ask(text); }
  int identified() const { return server_.identified(); }
  static bj::object json(const Answer& answer) { return parse_json(answer.body)->as_object(); }
  // The paths of the invalid fields.
  static std::vector<std::string> wrong(const Answer& answer) {
    std::vector<std::string> paths;
    const bj::object body = json(answer);
    if (!body.contains("details")) return paths;
    for (const bj::value& issue : body.at("details").at("issues").as_array()) {
      paths.emplace_back(issue.at("path").as_string());
    }
    return paths;
  }

 private:
  TestServer server_{routes()};
  Client client_{server_.port()};
};

using Paths = std::vector<std::string>;

TEST_F(EndpointTest, RefusesABodyWithAKeyThatIsGivenTwice) {
  const Answer answer = ask(json_request(thing, R"({"name":"a","sizes":[1],"name":"b"})"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(json(answer).at("code"), "validation_failed");
  EXPECT_EQ(wrong(answer), Paths{"/name"});
}

TEST_F(EndpointTest, PathQueryAndBodyReachTheHandlerDecoded) {
  const Answer answer =
      ask(json_request(thing + "?limit=3&colour=blue", R"({"name":"a","sizes":[1]})"));
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.header("content-type"), "application/json");
  EXPECT_EQ(json(answer).at("company"), company);
  EXPECT_EQ(json(answer).at("limit"), 3);
  EXPECT_EQ(json(answer).at("colour"), "blue");
  EXPECT_EQ(json(answer).at("name"), "a");
}

TEST_F(EndpointTest, ARawBodyReachesTheHandlerAsItWasSentWhateverItsType) {
  const std::string bytes("{ no\0JSON \xff", 12);
  for (const std::string type :
       {"", "Content-Type: application/json\r\n", "Content-Type: application/x-tar\r\n"}) {
    const Answer answer = ask(request("PUT /api/bytes", type, bytes));
    EXPECT_EQ(answer.status, 200) << type;
    EXPECT_EQ(answer.body, bytes) << type;
  }
  EXPECT_EQ(ask(request("PUT /api/bytes", "Content-Length: 0\r\n")).body, "");
}

TEST_F(EndpointTest, IdentifiesTheCallerOncePerRequestWhateverTheSizeOfItsBody) {
  const std::string large(Limits{}.small_body_bytes + 1, 'x');
  EXPECT_EQ(ask(request("GET /api/things")).status, 200);
  EXPECT_EQ(identified(), 1);
  EXPECT_EQ(ask(json_request(thing, R"({"name":"a"})")).status, 201);
  EXPECT_EQ(identified(), 2);
  EXPECT_EQ(ask(request("PUT /api/bytes", "", large)).body, large);
  EXPECT_EQ(identified(), 3);
  EXPECT_EQ(ask(request("PUT /api/bytes", "Authorization: Bearer wrong\r\n", large)).status, 401);
  EXPECT_EQ(identified(), 4);
}

TEST_F(EndpointTest, EveryWrongPartIsNamed) {
  const std::string body = R"({"name":"a"})";
  EXPECT_EQ(wrong(ask(json_request("POST /api/7/things/x", body))),
            (Paths{"/companyId", "/number"}));
  EXPECT_EQ(wrong(ask(json_request(thing + "?limit=3x", body))), Paths{"/limit"});
  EXPECT_EQ(wrong(ask(json_request(thing + "?limit=", body))), Paths{"/limit"});
  EXPECT_EQ(wrong(ask(json_request(thing + "?all=yes", body))), Paths{"/all"});
  EXPECT_EQ(wrong(ask(json_request(thing + "?colour=green", body))), Paths{"/colour"});
  EXPECT_EQ(wrong(ask(json_request(thing + "?agentId=1", body))), Paths{"/agentId"});
  EXPECT_EQ(wrong(ask(json_request(thing + "?limitt=3", body))), Paths{"/limitt"});
  EXPECT_EQ(wrong(ask(json_request(thing, R"({"nam":"a","sizes":[1,"x"]})"))),
            (Paths{"/nam", "/name", "/sizes/1"}));
  const Answer answer = ask(json_request(thing + "?limit=3x", body));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(json(answer).at("code"), "validation_failed");
  EXPECT_EQ(json(answer).at("error"), "query parameter 'limit': is not an integer");
}

TEST_F(EndpointTest, ABodyMustBeJsonAndSaySo) {
  EXPECT_EQ(ask(request(thing, "Content-Type: text/plain\r\n", R"({"name":"a"})")).status, 415);
  EXPECT_EQ(ask(request(thing, "", R"({"name":"a"})")).status, 415);
  EXPECT_EQ(ask(json_request(thing, "{name:1}")).status, 400);
  EXPECT_EQ(ask(json_request(thing, R"({"name":"a"} x)")).status, 400);
  EXPECT_EQ(wrong(ask(request(thing))), Paths{"/name"});
  const std::string merge = "Content-Type: application/merge-patch+json; charset=utf-8\r\n";
  EXPECT_EQ(ask(request(thing, merge, R"({"name":"a"})")).status, 201);
}

TEST_F(EndpointTest, ARouteWithoutBodyTakesAnEmptyObjectOnly) {
  EXPECT_EQ(ask(json_request("DELETE /api/thing", "{}")).status, 204);
  EXPECT_EQ(wrong(ask(json_request("DELETE /api/thing", R"({"x":1})"))), Paths{"/x"});
}

TEST_F(EndpointTest, AStoredValueHasAnETagThatIfMatchTakesBack) {
  const Answer answer = ask(request("PATCH /api/thing", "If-Match: \"7\"\r\n"));
  EXPECT_EQ(answer.header("etag"), "\"7\"");
  EXPECT_EQ(json(answer).at("ifVersion"), 7);
  EXPECT_TRUE(json(ask(request("PATCH /api/thing", "If-Match: *\r\n"))).at("ifVersion").is_null());
  for (const char* tag :
       {"7", "\"\"", "\"x\"", "W/\"7\"", "\"7\", \"8\"", "\"-1\"", "\"99999999999999999999\""}) {
    const Answer refused =
        ask(request("PATCH /api/thing", std::string{"If-Match: "} + tag + "\r\n"));
    EXPECT_EQ(refused.status, 400) << tag;
    EXPECT_EQ(wrong(refused), Paths{"/If-Match"}) << tag;
  }
}

TEST_F(EndpointTest, AListLinksToItsNextPageAndKeepsTheOtherParameters) {
  const Answer answer = ask(request("GET /api/things?limit=2&colour=red&after=x%20y"));
  EXPECT_EQ(answer.body, "[1,2]");
  EXPECT_EQ(answer.header("link"), "</api/things?colour=red&limit=2&after=17.a%20b>; rel=\"next\"");
  EXPECT_EQ(ask(request("GET /api/things?after=end")).header("link"), "");
}

TEST_F(EndpointTest, NoContentHasNeitherBodyNorLength) {
  const Answer answer = ask(request("DELETE /api/thing"));
  EXPECT_EQ(answer.status, 204);
  EXPECT_FALSE(answer.headers.contains("content-length"));
  EXPECT_FALSE(answer.headers.contains("content-type"));
}

TEST_F(EndpointTest, AnErrorOfTheHandlerBecomesItsStatus) {
  const Answer answer = ask(request("GET /api/busy"));
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.body, R"({"error":"thing 7: is busy","code":"conflict","remedy":"wait"})");
}

TEST_F(EndpointTest, AnIdempotencyKeyComesWithAFingerprintOfTheWholeRequest) {
  const auto print = [&](const std::string& line, const std::string& body) {
    const Answer answer = ask(json_request(line, body, "Idempotency-Key: k-1\r\n"));
    EXPECT_EQ(json(answer).at("once"), "k-1");
    return std::string{json(answer).at("fingerprint").as_string()};
  };
  const std::string first = print(thing, R"({"name":"a"})");
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(print(thing, R"({"name":"a"})"), first);
  EXPECT_NE(print(thing, R"({"name":"b"})"), first);
  EXPECT_NE(print(thing + "?limit=1", R"({"name":"a"})"), first);
  for (const std::string& key : {std::string{}, std::string(201, 'k'), std::string{"a b"}}) {
    const Answer refused =
        ask(json_request(thing, R"({"name":"a"})", "Idempotency-Key: " + key + "\r\n"));
    EXPECT_EQ(refused.status, 400) << key;
  }
}

TEST_F(EndpointTest, TheRunOfAnAgentComesFromEitherHeader) {
  for (const std::string name : {"X-Berth-Run-Id", "X-Paperclip-Run-Id"}) {
    const std::string field = name + ": " + std::string{company} + "\r\n";
    EXPECT_EQ(json(ask(request("PATCH /api/thing", field))).at("runId"), company);
    EXPECT_EQ(wrong(ask(request("PATCH /api/thing", name + ": 7\r\n"))), Paths{"/" + name});
  }
}

TEST_F(EndpointTest, TheRequestIdIsTheClientsIfItIsSaneAndOursOtherwise) {
  const Answer given = ask(request("PATCH /api/thing", "X-Request-Id: abc-1.2_3\r\n"));
  EXPECT_EQ(given.header("x-request-id"), "abc-1.2_3");
  EXPECT_EQ(json(given).at("requestId"), "abc-1.2_3");
  const Answer made = ask(request("PATCH /api/thing", "X-Request-Id: a\"b\r\n"));
  EXPECT_NE(made.header("x-request-id"), "a\"b");
  EXPECT_FALSE(made.header("x-request-id").empty());
  EXPECT_NE(ask(request("PATCH /api/thing")).header("x-request-id"), made.header("x-request-id"));
}

// One route of each kind for company administrators, which count how often they are entered.
std::vector<Route> counting(std::atomic<int>& entered) {
  constexpr auto needs = core::Permission::company_admin;
  using NoInput = Input<None, None, None>;
  return {
      Endpoint<None, None, None, NoContent>{.path = "/api/plain",
                                            .needs = needs,
                                            .tag = "test",
                                            .says = "Test",
                                            .call =
                                                [&entered](core::Call call, NoInput in) {
                                                  ++entered;
                                                  return drop(std::move(call), in);
                                                }},
      EventStream<None, None>{
          .path = "/api/stream",
          .needs = needs,
          .tag = "test",
          .says = "Test",
          .call =
              [&entered](core::Call, NoInput, const std::optional<std::string>&, EventSink&) {
                ++entered;
                return turn_away();
              }},
      SocketEndpoint<None, None>{.path = "/api/socket",
                                 .needs = needs,
                                 .tag = "test",
                                 .says = "Test",
                                 .call =
                                     [&entered](core::Call, NoInput, Socket&) {
                                       ++entered;
                                       return turn_away();
                                     }},
      RelayEndpoint<None>{.path = "/api/relay/*",
                          .needs = needs,
                          .tag = "test",
                          .says = "Test",
                          .call =
                              [&entered](core::Call, None) {
                                ++entered;
                                return nowhere();
                              }},
  };
}

TEST_F(EndpointTest, TheGateAndThePermissionStandBeforeTheHandler) {
  std::atomic<int> entered = 0;
  TestServer server{counting(entered)};
  const auto status = [&](const std::string& path, const std::string& fields) {
    const std::string upgrade =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    Client client{server.port()};
    return client.ask("GET " + path + " HTTP/1.1\r\n" + fields + upgrade + "\r\n").status;
  };
  const std::string here = "Host: localhost\r\n";
  for (const std::string path : {"/api/plain", "/api/stream", "/api/socket", "/api/relay/x"}) {
    const int before = entered;
    EXPECT_EQ(status(path, here + "Authorization: Bearer wrong\r\n"), 401) << path;
    EXPECT_EQ(status(path, here + "Authorization: Bearer viewer-11\r\n"), 403) << path;
    EXPECT_EQ(status(path, "Host: evil.example\r\n"), 403) << path;
    EXPECT_EQ(entered, before) << path;
    status(path, here);
    EXPECT_EQ(entered, before + 1) << path << " lets in whom it should";
  }
  EXPECT_EQ(ask(request("GET /api/self")).status, 403);
}

TEST(Origin, IsTheSameByItsSchemeHostAndPort) {
  EXPECT_TRUE(is_same_origin("http://localhost:3100", "http", "localhost:3100"));
  EXPECT_TRUE(is_same_origin("http://LOCALHOST", "http", "localhost:80"));
  EXPECT_TRUE(is_same_origin("https://berth.example", "https", "berth.example:443"));
  EXPECT_TRUE(is_same_origin("http://[::1]:3100", "http", "[::1]:3100"));
  EXPECT_FALSE(is_same_origin("https://localhost:3100", "http", "localhost:3100"));
  EXPECT_FALSE(is_same_origin("http://localhost:3101", "http", "localhost:3100"));
  EXPECT_FALSE(is_same_origin("http://localhost", "http", "localhost:3100"));
  EXPECT_FALSE(is_same_origin("http://berth.example", "https", "berth.example"));
  for (const char* wrong :
       {"null", "", "localhost:3100", "http://", "file://", "http://localhost:x"}) {
    EXPECT_FALSE(is_same_origin(wrong, "http", "localhost:3100")) << wrong;
    EXPECT_FALSE(is_same_origin(wrong, "http", "")) << wrong;
  }
}

TEST(HostName, IsWhatStandsBeforeAPortAndNothingElse) {
  EXPECT_EQ(host_name("localhost"), "localhost");
  EXPECT_EQ(host_name("localhost:3100"), "localhost");
  EXPECT_EQ(host_name("[::1]:3100"), "::1");
  EXPECT_EQ(host_name("[::1]"), "::1");
  for (const char* wrong : {"localhost:evil.example", "[::1]evil.example", "[::1", "[::1]3100"}) {
    EXPECT_EQ(host_name(wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace berth::http
