#include "cli/config.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

namespace berth::cli {
namespace {

using testing::HasSubstr;

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    input_.user = 1000;
    input_.system_file = folder_ + "/etc.toml";
    input_.variables = {{"HOME", folder_}};
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(make_directories(parent_of(path), 0700));
    EXPECT_TRUE(replace_file(path, text, 0600));
    return path;
  }
  Config load() {
    Result<Config> config = load_config(input_);
    EXPECT_TRUE(config) << (config ? "" : config.error().message);
    return config ? *std::move(config) : Config{};
  }
  Error refusal() {
    Result<Config> config = load_config(input_);
    EXPECT_FALSE(config);
    return config ? Error{} : config.error();
  }

  const tests::TemporaryFolder temporary_;
  const std::string& folder_ = temporary_.path();
  ConfigInput input_;
};

TEST_F(ConfigTest, DefaultsComeFromTheHomeOfThePerson) {
  const Config config = load();
  EXPECT_EQ(config.settings.home, folder_ + "/.local/share/berth");
  EXPECT_EQ(config.settings.listen, "127.0.0.1:3100");
  EXPECT_EQ(config.settings.database, "sqlite:" + config.settings.home + "/berth.db");
  EXPECT_EQ(config.settings.master_key_file, config.settings.home + "/master.key");
  EXPECT_EQ(config.settings.mode, Mode::local_trusted);
  EXPECT_EQ(config.sources.at("listen"), "default");
}

TEST_F(ConfigTest, RootAndXdgHaveHomesOfTheirOwn) {
  input_.variables["XDG_DATA_HOME"] = "/data";
  EXPECT_EQ(load().settings.home, "/data/berth");
  input_.user = 0;
  EXPECT_EQ(load().settings.home, "/var/lib/berth");
}

TEST_F(ConfigTest, AFlagWinsOverAVariableOverTheFileOverTheDefault) {
  const std::string file = write("b.toml",
                                 "# mine\nlisten = \"127.0.0.1:1\"\nlog_level = 'warn'\n"
                                 "connections_max = 5\n");
  input_.variables["BERTH_CONFIG"] = file;
  EXPECT_EQ(load().settings.listen, "127.0.0.1:1");
  EXPECT_EQ(load().sources.at("listen"), file + ":2:1");
  input_.variables["BERTH_LISTEN"] = "127.0.0.1:2";
  EXPECT_EQ(load().settings.listen, "127.0.0.1:2");
  EXPECT_EQ(load().sources.at("listen"), "BERTH_LISTEN");
  input_.flags["listen"] = "127.0.0.1:3";
  const Config config = load();
  EXPECT_EQ(config.settings.listen, "127.0.0.1:3");
  EXPECT_EQ(config.sources.at("listen"), "--listen");
  EXPECT_EQ(config.settings.log_level, LogLevel::warn);
  EXPECT_EQ(config.settings.connections_max, 5);
  EXPECT_EQ(config.sources.at("mode"), "default");
}

TEST_F(ConfigTest, TheFileOfTheHomeWinsOverTheOneOfTheSystem) {
  write("etc.toml", "log_level = 'error'");
  EXPECT_EQ(load().settings.log_level, LogLevel::error);
  write("home/berth.toml", "log_level = 'debug'");
  input_.flags["home"] = folder_ + "/home";
  EXPECT_EQ(load().settings.log_level, LogLevel::debug);
}

TEST_F(ConfigTest, TheDatabaseFollowsTheHomeUnlessItIsNamed) {
  input_.flags["home"] = "/srv/b";
  EXPECT_EQ(load().settings.database, "sqlite:/srv/b/berth.db");
  input_.variables["BERTH_DATABASE_URL"] = "postgresql://u:p@h/db";
  EXPECT_EQ(load().settings.database, "postgresql://u:p@h/db");
}

TEST_F(ConfigTest, ListsAreReadFromEveryLayer) {
  input_.file = write("b.toml", "allowed_hosts = [\"a.example\", \"b.example\"]");
  EXPECT_EQ(load().settings.allowed_hosts, (std::vector<std::string>{"a.example", "b.example"}));
  input_.variables["BERTH_ALLOWED_HOSTS"] = "c.example, d.example";
  EXPECT_EQ(load().settings.allowed_hosts, (std::vector<std::string>{"c.example", "d.example"}));
}

TEST_F(ConfigTest, EveryWrongFileIsRefusedWithItsPlaceAndARemedy) {
  struct Case {
    std::string text;
    std::string says;
    std::string remedy;
  };
  for (const auto& [text, says, remedy] : std::vector<Case>{
           {"\n lisen = '127.0.0.1:1'", ":2:2: lisen: is not a known setting", "'listen'"},
           {"home = 5", ":1:1: home: has the wrong type", "quotes"},
           {"connections_max = 'many'", ":1:1: connections_max: has the wrong type", "number"},
           {"connections_max = 0", "connections_max: is 0", "from 1 to"},
           {"connections_max = 1.5", "connections_max: is neither", "quotes"},
           {"allowed_hosts = 'a'", "allowed_hosts: has the wrong type", "list"},
           {"allowed_hosts = [1]", "allowed_hosts: holds something else", "one"},
           {"mode = 'open'", ":1:1: mode: is 'open'", "local_trusted, authenticated"},
           {"listen = '3100'", ":1:1: listen: '3100' is not a host and port", "127.0.0.1:3100"},
           {"tls_cert = '/c.pem'", "tls_cert: is given without its partner", "together"},
           {"database = 'mysql://x'", "database: names no database engine", "sqlite:"},
           {"public_url = 'berth.example'", "public_url: is not an http", "https://"},
           {"[server]\nlisten = 'x'", "server: is not a known setting", "config show"},
           {"listen = ", ":1:", "name = value"},
           {"listen = 'a:1'\nlisten = 'b:1'", ":2:", "name = value"},
       }) {
    input_.file = write("wrong.toml", text);
    const Error error = refusal();
    EXPECT_EQ(error.code, Errc::config_invalid) << text;
    EXPECT_THAT(error.message, HasSubstr(says));
    EXPECT_THAT(error.message, HasSubstr("wrong.toml")) << text;
    EXPECT_THAT(error.remedy, HasSubstr(remedy));
  }
}

TEST_F(ConfigTest, ANamedFileThatIsMissingIsAnError) {
  input_.file = folder_ + "/nowhere.toml";
  EXPECT_THAT(refusal().message, HasSubstr("nowhere.toml"));
  input_.file.reset();
  input_.variables["BERTH_CONFIG"] = folder_;
  EXPECT_EQ(refusal().code, Errc::config_invalid);
}

TEST_F(ConfigTest, WrongVariablesAndFlagsAreRefusedByName) {
  input_.variables["BERTH_CONNECTIONS_MAX"] = "10k";
  EXPECT_THAT(refusal().message, HasSubstr("BERTH_CONNECTIONS_MAX: connections_max: '10k'"));
  input_.variables.erase("BERTH_CONNECTIONS_MAX");
  input_.flags["mode"] = "x";
  EXPECT_THAT(refusal().message, HasSubstr("--mode: mode: is 'x'"));
}

TEST_F(ConfigTest, AnUnknownVariableIsNamedWithTheOneThatWasMeant) {
  input_.variables["BERTH_LISEN"] = "x";
  input_.variables["BERTH_QWERTYUIOP"] = "x";
  input_.variables["BERTH_TEST_PG"] = "x";
  input_.variables["BERTH_TOKEN"] = "x";
  const Config config = load();
  ASSERT_EQ(config.warnings.size(), 2u);
  EXPECT_THAT(config.warnings[0], HasSubstr("did you mean BERTH_LISTEN?"));
  EXPECT_THAT(config.warnings[1], testing::Not(HasSubstr("did you mean")));
}

TEST_F(ConfigTest, NoPasswordAndNoKeyIsShown) {
  input_.variables["BERTH_DATABASE_URL"] = "postgresql://u:hunter2@h/db?sslmode=require";
  input_.variables["BERTH_MASTER_KEY"] = "hunter2";
  const Config config = load();
  EXPECT_EQ(config.master_key->reveal(), "hunter2");
  std::string all;
  for (const ShownSetting& row : show(config)) all += row.name + row.value + row.source + "\n";
  EXPECT_THAT(all, testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(all, HasSubstr("postgresql://u:****@h/db?sslmode=require"));
  EXPECT_THAT(all, HasSubstr("master_key****BERTH_MASTER_KEY"));
}

TEST(MaskPassword, LeavesWhatIsNoPassword) {
  EXPECT_EQ(mask_password("sqlite:/a@b:c"), "sqlite:/a@b:c");
  EXPECT_EQ(mask_password("postgresql://u@h:5432/db"), "postgresql://u@h:5432/db");
  EXPECT_EQ(mask_password("postgresql://u:p@ss@h/db"), "postgresql://u:****@h/db");
  EXPECT_EQ(mask_password("postgresql://h/db?user=u&password=p&x=1"),
            "postgresql://h/db?user=u&password=****&x=1");
}

TEST(ParseListen, TakesHostsAndPortsAndNothingElse) {
  EXPECT_EQ(parse_listen("[::1]:0").value().host, "::1");
  EXPECT_EQ(parse_listen("localhost:3100").value().port, 3100);
  for (const auto* wrong :
       {"", ":", ":80", "a", "a:", "a:b", "a:65536", "::1:80", "a:-1", "[]:1"}) {
    EXPECT_FALSE(parse_listen(wrong)) << wrong;
  }
}

TEST(Closest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(closest("lisen", {"home", "listen"}), "listen");
  EXPECT_EQ(closest("qqqqqq", {"home", "listen"}), "");
}

}  // namespace
}  // namespace berth::cli
