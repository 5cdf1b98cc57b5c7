#include "http/server/router.hpp"

#include <gtest/gtest.h>

namespace berth::http {
namespace {

Route route(Verb verb, std::string path) {
  Route made;
  made.verb = verb;
  made.path = std::move(path);
  return made;
}

std::vector<Route> table() {
  std::vector<Route> routes;
  routes.push_back(route(Verb::get, "/"));
  routes.push_back(route(Verb::get, "/api/things"));
  routes.push_back(route(Verb::post, "/api/things"));
  routes.push_back(route(Verb::get, "/api/things/{thing_id}"));
  routes.push_back(route(Verb::get, "/api/things/recent"));
  routes.push_back(route(Verb::post, "/api/things/probe"));
  routes.push_back(route(Verb::get, "/api/things/{thing}/parts/{part}"));
  return routes;
}

TEST(Router, ALiteralSegmentWinsOverAParameter) {
  const Router router{table()};
  EXPECT_EQ(router.find(Verb::get, {"api", "things", "recent"})->route->path, "/api/things/recent");
  EXPECT_EQ(router.find(Verb::get, {"api", "things", "7"})->route->path, "/api/things/{thing_id}");
  EXPECT_EQ(router.find(Verb::get, {""})->route->path, "/");
}

TEST(Router, AParameterTakesOverWhereTheLiteralHasAnotherVerbOrLeadsNowhere) {
  const Router router{table()};
  EXPECT_EQ(router.find(Verb::get, {"api", "things", "probe"})->route->path,
            "/api/things/{thing_id}");
  EXPECT_EQ(router.find(Verb::get, {"api", "things", "recent", "parts", "2"})->route->path,
            "/api/things/{thing}/parts/{part}");
}

TEST(Router, ParametersComeWithTheirWireNames) {
  const Router router{table()};
  const auto one = router.find(Verb::get, {"api", "things", "7"});
  ASSERT_EQ(one->values.size(), 1U);
  EXPECT_EQ(one->values[0].name, "thingId");
  const auto two = router.find(Verb::get, {"api", "things", "a b", "parts", "2"});
  ASSERT_EQ(two->values.size(), 2U);
  EXPECT_EQ(two->values[0].text, "a b");
  EXPECT_EQ(two->values[1].name, "part");
  EXPECT_EQ(two->values[1].text, "2");
}

TEST(Router, AnUnknownPathIsNotFoundAndAKnownOneSaysWhatItTakes) {
  const Router router{table()};
  for (const std::vector<std::string>& path :
       {std::vector<std::string>{"api"}, {"api", "things", ""}, {"api", "", "things"}}) {
    EXPECT_EQ(router.find(Verb::get, path).error().code, Errc::route_not_found);
  }
  for (const std::optional<Verb>& verb : {std::optional<Verb>{}, std::optional{Verb::patch}}) {
    const auto refused = router.find(verb, {"api", "things"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::method_not_allowed);
    EXPECT_EQ(refused.error().facts.at("allow"), (std::vector<std::string>{"GET", "HEAD", "POST"}));
  }
}

TEST(Router, APathThatEndsInAStarTakesEverythingBelowItWithAnyVerb) {
  std::vector<Route> routes = table();
  routes.push_back(route(Verb::get, "/api/things/{thing}/in/{port}/*"));
  const Router router{std::move(routes)};
  for (const auto& rest : std::vector<std::vector<std::string>>{{""}, {"a"}, {"a", "", "b"}}) {
    std::vector<std::string> path{"api", "things", "7", "in", "80"};
    path.insert(path.end(), rest.begin(), rest.end());
    for (const std::optional<Verb> verb :
         {std::optional{Verb::get}, std::optional{Verb::delete_}, std::optional<Verb>{}}) {
      const auto found = router.find(verb, path);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->route->path, "/api/things/{thing}/in/{port}/*");
      ASSERT_EQ(found->values.size(), 2U);
      EXPECT_EQ(found->values[0].text, "7");
      EXPECT_EQ(found->values[1].name, "port");
      EXPECT_EQ(found->values[1].text, "80");
    }
  }
  EXPECT_FALSE(router.find(Verb::get, {"api", "things", "7", "in", "80"})) << "not the path itself";
  EXPECT_FALSE(router.find(Verb::get, {"api", "things", "7", "in", "", "x"}));
}

TEST(Router, TheRouteForTheRestLeavesTheApiAndOtherVerbsAlone) {
  std::vector<Route> routes = table();
  routes.push_back(route(Verb::get, "/*"));
  const Router router{std::move(routes)};
  EXPECT_EQ(router.find(Verb::get, {"runs", "7"})->route->path, "/*");
  EXPECT_EQ(router.find(Verb::get, {""})->route->path, "/");
  EXPECT_EQ(router.find(Verb::get, {"api", "nothing"}).error().code, Errc::route_not_found);
  EXPECT_EQ(router.find(Verb::get, {"api"}).error().code, Errc::route_not_found);
  EXPECT_EQ(router.find(Verb::post, {"runs", "7"}).error().code, Errc::route_not_found);
  EXPECT_EQ(router.find(Verb::patch, {"api", "things"}).error().code, Errc::method_not_allowed);
}

TEST(RouterDeathTest, TwoRoutesAlikeEndTheProcess) {
  std::vector<Route> routes;
  routes.push_back(route(Verb::get, "/a/{x}"));
  routes.push_back(route(Verb::get, "/a/{y}"));
  EXPECT_DEATH(Router{std::move(routes)}, "place == nullptr");
}

}  // namespace
}  // namespace berth::http
